#include "base/xml.h"

#include "base/text.h"

namespace tabella {

std::string xml_text(std::string_view text) {
  std::string escaped;
  auto shown = printable(text);
  // Characters that XML does not have.
  for (const auto* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (auto at = shown.find(none); at != std::string::npos; at = shown.find(none, at)) shown.erase(at, 3);
  for (const char c : shown) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&apos;"; break;
      default: escaped.push_back(c);
    }
  }
  return escaped;
}

}  // namespace tabella

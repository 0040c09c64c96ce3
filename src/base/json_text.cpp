#include "base/json_text.h"

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace tabella {
namespace {

// Whether any byte needs escaping: below 0x20, a quote or a backslash. Written so that it becomes vector
// code.
constexpr size_t kStride = 32;
bool any_special(const char* text) {
  uint8_t special = 0;
  for (size_t i = 0; i < kStride; ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    special |= static_cast<uint8_t>((c < 0x20) | (c == '"') | (c == '\\'));
  }
  return special != 0;
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    while (i + kStride <= text.size() && !any_special(text.data() + i)) i += kStride;
    if (i == text.size()) break;
    const char c = text[i];
    if (static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, from, i - from);
    from = i + 1;
    switch (c) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      case '\b': out.append("\\b"); break;
      case '\f': out.append("\\f"); break;
      default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    }
  }
  out.append(text, from);
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  append_json_text(out, text);
  out.push_back('"');
}

}  // namespace tabella

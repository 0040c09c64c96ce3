#include "net/target.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::net {
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out.push_back(' ');
    } else if (text[i] == '%') {
      const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high << 4 | low));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '-' || c == '_' || c == '.' || c == '~')
      out.push_back(c);
    else
      fmt::format_to(std::back_inserter(out), "%{:02X}", u);
  }
  return out;
}

std::map<std::string, std::string, std::less<>> parse_form(std::string_view text) {
  std::map<std::string, std::string, std::less<>> fields;
  for (const auto pair : split(text, '&')) {
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (name && value && !name->empty()) fields.emplace(std::move(*name), std::move(*value));
  }
  return fields;
}

std::optional<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  Target target;
  const auto question = std::min(text.find('?'), text.size());
  for (const auto segment : split(text.substr(1, question - 1), '/')) {
    auto decoded = percent_decode(segment, false);
    if (!decoded) return std::nullopt;
    target.segments.push_back(std::move(*decoded));
  }
  if (question < text.size()) target.query = parse_form(text.substr(question + 1));
  return target;
}

}  // namespace tabella::net

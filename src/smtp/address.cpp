#include "smtp/address.h"

#include <algorithm>

#include "base/text.h"

namespace tabella::smtp {
namespace {

// The end of the path that begins with '<': the '>' that is not inside quotes.
size_t closing_bracket(std::string_view text) {
  bool quoted = false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && text[i] == '>')
      return i;
  }
  return std::string_view::npos;
}

std::expected<void, std::string> parse_parameters(std::string_view text, PathArgument& argument) {
  for (auto word : split(text, ' ')) {
    if (word.empty()) continue;
    const auto equals = word.find('=');
    auto name = upper(word.substr(0, equals));
    const bool fits = !name.empty() &&
                      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
    if (!fits) return std::unexpected("the parameters after the address cannot be read");
    argument.parameters[name] = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  }
  return {};
}

}  // namespace

// To the end whatever it finds: so the compiler takes many bytes at once, and contents are long.
bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

bool is_address(std::string_view text) {
  constexpr size_t kLongest = 320;
  if (text.empty() || text.size() > kLongest) return false;
  const auto at = text.rfind('@');
  const auto mailbox = text.substr(0, at);
  const bool quoted = is_quoted_string(mailbox);
  const auto harmless = [](std::string_view part, bool blanks) {
    return std::ranges::all_of(part, [blanks](char c) {
      const auto u = static_cast<unsigned char>(c);
      return u > 0x20 ? u != 0x7f && (blanks || (c != '<' && c != '>')) : blanks && c == ' ';
    });
  };
  if (mailbox.empty() || !harmless(mailbox, quoted)) return false;
  if (!quoted && mailbox.find('"') != std::string_view::npos) return false;
  if (at == std::string_view::npos) return true;
  const auto domain = text.substr(at + 1);
  return !domain.empty() && harmless(domain, false) && domain.find_first_of("\"(),;@") == domain.npos;
}

std::expected<PathArgument, std::string> parse_path(std::string_view text) {
  text = trim(text);
  PathArgument argument;
  std::string_view path;
  std::string_view rest;
  if (text.starts_with('<')) {
    const auto end = closing_bracket(text);
    if (end == std::string_view::npos) return std::unexpected("the address has no '>'");
    path = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    // Old clients leave the brackets out.
    const auto end = std::min(text.find(' '), text.size());
    path = text.substr(0, end);
    rest = text.substr(end);
    if (path.empty()) return std::unexpected("the address is missing");
  }
  if (path.starts_with('@')) {
    const auto colon = path.find(':');
    if (colon == std::string_view::npos) return std::unexpected("the route has no address behind it");
    path.remove_prefix(colon + 1);
  }
  if (!path.empty() && !is_address(path)) return std::unexpected("the address cannot be read");
  argument.address = path;
  if (auto parsed = parse_parameters(rest, argument); !parsed) return std::unexpected(parsed.error());
  return argument;
}

}  // namespace tabella::smtp

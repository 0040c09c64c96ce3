// Small things that are done to text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace tabella {

// Without blanks and tabs at its ends.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// A blank, or one of the control characters that lay text out.
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// ASCII letters in one case; all else as it is.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}
inline std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = upper(c);
  return result;
}

// -1: it is none.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Printable ASCII without blanks: what can stand in a header without changing what it says.
constexpr bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// In quotes, with a backslash before each quote and each backslash within: RFC 5322's and RFC 5321's.
constexpr bool is_quoted_string(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  const auto content = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < content.size(); ++i) {
    if (content[i] == '"') return false;
    if (content[i] != '\\') continue;
    if (++i == content.size()) return false;
  }
  return true;
}

// How many bytes of UTF-8 the control character at the front has; 0: there is none. U+0080 to U+009F are
// some, too: terminals obey them, and one ends a line to some programs.
constexpr size_t control_length(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0xff; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  return byte(0) == 0xc2 && byte(1) < 0xa0 ? 2 : 0;
}

// For terminals, logs and JSON, whoever wrote it: valid UTF-8, with a blank for each control character.
inline std::string printable(std::string_view text) {
  const auto valid = to_valid_utf8(text);
  std::string result;
  for (std::string_view left = valid; !left.empty();) {
    const auto control = control_length(left);
    result.push_back(control > 0 ? ' ' : left.front());
    left.remove_prefix(std::max<size_t>(control, 1));
  }
  return result;
}

}  // namespace tabella

#include "base/json_text.h"

#include <algorithm>
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

namespace {

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Behind the string that begins at `at`.
size_t end_of_json_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

size_t end_of_json_value(std::string_view text) {
  size_t at = 0;
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_json_string(text, at);
      if (depth == 0) return at;
      continue;
    }
    const bool closes = c == '}' || c == ']';
    if (depth == 0 && (closes || c == ',' || is_json_blank(c))) return at;  // behind a number or a word
    if (c == '{' || c == '[') ++depth;
    ++at;
    if (closes && --depth == 0) return at;
  }
  return at;
}

void skip_json_blanks(std::string_view& text) {
  while (!text.empty() && (is_json_blank(text.front()) || text.front() == ',' || text.front() == ':'))
    text.remove_prefix(1);
}

}  // namespace

JsonTexts::JsonTexts(std::string_view container) : rest_(container) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // which parsers pass over
  skip_json_blanks(rest_);
  object_ = rest_.starts_with('{');
  if (!rest_.empty()) rest_.remove_prefix(1);
}

bool JsonTexts::next() {
  skip_json_blanks(rest_);
  if (object_ && rest_.starts_with('"')) {
    rest_.remove_prefix(end_of_json_string(rest_, 0));
    skip_json_blanks(rest_);
  }
  if (rest_.empty() || rest_.front() == '}' || rest_.front() == ']') return false;
  text_ = rest_.substr(0, end_of_json_value(rest_));
  rest_.remove_prefix(text_.size());
  return true;
}

void append_compact_json(std::string& out, std::string_view valid) {
  out.reserve(out.size() + valid.size());
  for (size_t at = 0; at < valid.size();) {
    const auto begin = at;
    if (valid[at] == '"') {
      at = end_of_json_string(valid, at);
    } else {
      while (at < valid.size() && valid[at] != '"' && !is_json_blank(valid[at])) ++at;
    }
    out.append(valid.substr(begin, at - begin));
    while (at < valid.size() && is_json_blank(valid[at])) ++at;
  }
}

}  // namespace tabella

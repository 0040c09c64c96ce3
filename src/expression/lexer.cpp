#include "expression/lexer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::expression {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t word_end(std::string_view text, size_t from) {
  while (from < text.size() && is_word(text[from])) ++from;
  return from;
}

size_t number_end(std::string_view text, size_t from) {
  while (from < text.size() && is_digit(text[from])) ++from;
  return from;
}

// 12, 1.5, .5, 7e-3
size_t decimal_end(std::string_view text, size_t from) {
  from = number_end(text, from);
  if (from < text.size() && text[from] == '.') from = number_end(text, from + 1);
  if (from < text.size() && upper(text[from]) == 'E') {
    size_t digits = from + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    if (digits < text.size() && is_digit(text[digits])) from = number_end(text, digits);
  }
  return from;
}

// Past the closing quote, a doubled one being part of the text; npos if there is none.
size_t quote_end(std::string_view text, size_t from) {
  const char quote = text[from];
  for (size_t at = from + 1; at < text.size(); ++at) {
    if (text[at] != quote) continue;
    if (at + 1 == text.size() || text[at + 1] != quote) return at + 1;
    ++at;
  }
  return std::string_view::npos;
}

size_t symbol_end(std::string_view text, size_t from, Dialect dialect) {
  const auto two = text.substr(from, 2);
  if (two == "<=" || two == ">=" || two == "<>") return from + 2;
  if (dialect == Dialect::statement && (two == "!=" || two == "<<" || two == ">>")) return from + 2;
  // A character of several bytes stays whole, so that an error message stays valid UTF-8.
  ++from;
  while (from < text.size() && (static_cast<uint8_t>(text[from]) & 0xc0) == 0x80) ++from;
  return from;
}

// Past blanks and comments; npos if a comment does not end.
size_t blank_end(std::string_view text, size_t from, Dialect dialect) {
  while (from < text.size()) {
    const auto two = text.substr(from, 2);
    if (is_blank(text[from])) {
      ++from;
    } else if (dialect == Dialect::statement && two == "--") {
      from = std::min(text.find('\n', from), text.size());
    } else if (dialect == Dialect::statement && two == "/*") {
      const auto end = text.find("*/", from + 2);
      if (end == std::string_view::npos) return end;
      from = end + 2;
    } else {
      break;
    }
  }
  return from;
}

struct Lexed {
  Token::Kind kind;
  size_t end;
};

Lexed lex_expression(std::string_view text, size_t at) {
  const char c = text[at];
  if (is_letter(c)) return {Token::Kind::identifier, word_end(text, at)};
  if (c == '#') return {Token::Kind::name, word_end(text, at + 1)};
  if (c == ':') return {Token::Kind::value, word_end(text, at + 1)};
  if (is_digit(c)) return {Token::Kind::number, number_end(text, at)};
  return {Token::Kind::symbol, symbol_end(text, at, Dialect::expression)};
}

Lexed lex_statement(std::string_view text, size_t at) {
  const char c = text[at];
  if (is_letter(c) || c == '_' || c == '$') return {Token::Kind::identifier, word_end(text, at + 1)};
  const bool fraction = c == '.' && at + 1 < text.size() && is_digit(text[at + 1]);
  if (is_digit(c) || fraction) return {Token::Kind::number, decimal_end(text, at)};
  if (c == '\'' || c == '"') {
    const auto end = quote_end(text, at);
    if (end == std::string_view::npos) return {Token::Kind::broken, text.size()};
    return {c == '"' ? Token::Kind::quoted : Token::Kind::string, end};
  }
  return {Token::Kind::symbol, symbol_end(text, at, Dialect::statement)};
}

}  // namespace

std::vector<Token> tokenize(std::string_view text, Dialect dialect) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (true) {
    const auto start = blank_end(text, at, dialect);
    if (start == std::string_view::npos) tokens.push_back({Token::Kind::broken, text.substr(at)});
    if (start >= text.size()) break;
    const auto [kind, end] =
        dialect == Dialect::expression ? lex_expression(text, start) : lex_statement(text, start);
    tokens.push_back({kind, text.substr(start, end - start)});
    at = end;
  }
  tokens.push_back({Token::Kind::end, text.substr(text.size())});
  return tokens;
}

std::string syntax_error(const std::vector<Token>& tokens, size_t at) {
  if (tokens[at].kind == Token::Kind::end) {
    const auto last = at > 0 ? tokens[at - 1].text : std::string_view();
    return fmt::format("Syntax error; token: \"<EOF>\", near: \"{}\"", last);
  }
  const auto& first = tokens[at > 0 ? at - 1 : at].text;
  const auto& last = tokens[at + 1].kind == Token::Kind::end ? tokens[at].text : tokens[at + 1].text;
  const std::string_view near(first.data(), static_cast<size_t>(last.data() + last.size() - first.data()));
  return fmt::format("Syntax error; token: \"{}\", near: \"{}\"", tokens[at].text, near);
}

bool same_word(std::string_view a, std::string_view upper_word) {
  return std::equal(a.begin(), a.end(), upper_word.begin(), upper_word.end(),
                    [](char x, char y) { return upper(x) == y; });
}

}  // namespace tabella::expression

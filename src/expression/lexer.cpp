#include "expression/lexer.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::expression {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

size_t word_end(std::string_view text, size_t from) {
  while (from < text.size() && is_word(text[from])) ++from;
  return from;
}

size_t number_end(std::string_view text, size_t from) {
  while (from < text.size() && is_digit(text[from])) ++from;
  return from;
}

size_t symbol_end(std::string_view text, size_t from) {
  const auto two = text.substr(from, 2);
  if (two == "<=" || two == ">=" || two == "<>") return from + 2;
  // A character of several bytes stays whole, so that an error message stays valid UTF-8.
  ++from;
  while (from < text.size() && (static_cast<uint8_t>(text[from]) & 0xc0) == 0x80) ++from;
  return from;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  const auto add = [&](Token::Kind kind, size_t end) {
    tokens.push_back({kind, text.substr(at, end - at)});
    at = end;
  };
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) break;
    const char c = text[at];
    if (is_letter(c))
      add(Token::Kind::identifier, word_end(text, at));
    else if (c == '#')
      add(Token::Kind::name, word_end(text, at + 1));
    else if (c == ':')
      add(Token::Kind::value, word_end(text, at + 1));
    else if (is_digit(c))
      add(Token::Kind::number, number_end(text, at));
    else
      add(Token::Kind::symbol, symbol_end(text, at));
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

// Splits an expression into tokens. One lexer serves every grammar; what is a keyword is the grammar's
// business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tabella::expression {

struct Token {
  // name: #n, value: :v; quoted: "n", string: 'text', both with their quotes; broken: a quote or comment that
  // does not end.
  enum class Kind { identifier, name, value, number, quoted, string, symbol, broken, end };
  Kind kind;
  std::string_view text;
};

// Expressions know references; statements know quotes, decimals and comments.
enum class Dialect { expression, statement };

// Tokens borrow from `text`; the last one is `end`. Characters that no grammar knows become symbols of one
// character, for the parser to refuse.
std::vector<Token> tokenize(std::string_view text, Dialect dialect);

// AWS's words for a token that does not fit: the token, and the text from the one before to the one after.
std::string syntax_error(const std::vector<Token>& tokens, size_t at);

bool same_word(std::string_view a, std::string_view upper);
bool is_reserved_word(std::string_view word);

}  // namespace tabella::expression

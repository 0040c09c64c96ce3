// Splits an expression into tokens. One lexer serves every grammar; what is a keyword is the grammar's
// business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tabella::expression {

struct Token {
  enum class Kind { identifier, name, value, number, symbol, end };  // name: #n, value: :v
  Kind kind;
  std::string_view text;
};

// Tokens borrow from `text`; the last one is `end`. Characters that no grammar knows become symbols of one
// character, for the parser to refuse.
std::vector<Token> tokenize(std::string_view text);

// AWS's words for a token that does not fit: the token, and the text from the one before to the one after.
std::string syntax_error(const std::vector<Token>& tokens, size_t at);

bool same_word(std::string_view a, std::string_view upper);
bool is_reserved_word(std::string_view word);

}  // namespace tabella::expression

// Results by value. Each layer has its own error type; the two lowest rooms (item/, expression/) only ever
// have one thing to say — what is wrong with the input — so theirs is a sentence.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace tabella {

// Input that breaks a rule. The message is meant for the client and is worded as DynamoDB words it.
struct Invalid {
  std::string message;
};

template <class T = void>
using Checked = std::expected<T, Invalid>;

inline std::unexpected<Invalid> invalid(std::string message) {
  return std::unexpected(Invalid{std::move(message)});
}

}  // namespace tabella

// Leaves the function with the error of EXPR, if it has one.
#define TABELLA_TRY(EXPR)                                                                             \
  do {                                                                                                \
    if (auto try_result = (EXPR); !try_result) return std::unexpected(std::move(try_result).error()); \
  } while (false)

#define TABELLA_CONCAT_INNER(A, B) A##B
#define TABELLA_CONCAT(A, B) TABELLA_CONCAT_INNER(A, B)

// TABELLA_ASSIGN(auto x, f()): x is the value of f(), or the function is left with its error.
#define TABELLA_ASSIGN(DECL, EXPR)                                                \
  auto TABELLA_CONCAT(assign_, __LINE__) = (EXPR);                                \
  if (!TABELLA_CONCAT(assign_, __LINE__))                                         \
    return std::unexpected(std::move(TABELLA_CONCAT(assign_, __LINE__)).error()); \
  DECL = std::move(*TABELLA_CONCAT(assign_, __LINE__))  // NOLINT(bugprone-macro-parentheses): a declaration

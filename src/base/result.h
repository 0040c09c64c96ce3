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

// Leaves the function with the error of EXPR, if it has one. The CO_ ones are for coroutines:
// TABELLA_CO_TRY(co_await f());
#define TABELLA_TRY(...) TABELLA_TRY_BY(return, __VA_ARGS__)
#define TABELLA_CO_TRY(...) TABELLA_TRY_BY(co_return, __VA_ARGS__)

// TABELLA_ASSIGN(auto x, f()): x is the value of f(), or the function is left with its error. In a coroutine:
// TABELLA_CO_ASSIGN(auto x, co_await f()).
#define TABELLA_ASSIGN(DECL, ...) \
  TABELLA_ASSIGN_BY(return, TABELLA_CONCAT(assign_, __LINE__), DECL, __VA_ARGS__)
#define TABELLA_CO_ASSIGN(DECL, ...) \
  TABELLA_ASSIGN_BY(co_return, TABELLA_CONCAT(assign_, __LINE__), DECL, __VA_ARGS__)

// NOLINTBEGIN(bugprone-macro-parentheses): a keyword and a declaration
#define TABELLA_TRY_BY(RETURN, ...)                                                                          \
  do {                                                                                                       \
    if (auto try_result = (__VA_ARGS__); !try_result) RETURN std::unexpected(std::move(try_result).error()); \
  } while (false)
#define TABELLA_ASSIGN_BY(RETURN, RESULT, DECL, ...)              \
  auto RESULT = (__VA_ARGS__);                                    \
  if (!RESULT) RETURN std::unexpected(std::move(RESULT).error()); \
  DECL = std::move(*RESULT)
// NOLINTEND(bugprone-macro-parentheses)
#define TABELLA_CONCAT_INNER(A, B) A##B
#define TABELLA_CONCAT(A, B) TABELLA_CONCAT_INNER(A, B)

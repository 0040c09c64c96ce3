// The core that the grammars share: a cursor over tokens, and the descent through OR, AND, NOT and
// comparisons. What a name, a value or a function is, each grammar says for itself. Internal to this room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expression/lexer.h"
#include "expression/tree.h"

namespace tabella::expression {

// A syntax error is thrown within a parser and caught where the parse begins: it unwinds the descent, and the
// functions stay readable. It never leaves the parser's file.
struct SyntaxError {
  size_t at;  // the token
};
struct Refused {
  std::string message;
};
struct TooDeep {};

class Descent {
 public:
  explicit Descent(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  virtual ~Descent() = default;

  const std::vector<Token>& tokens() const { return tokens_; }

 protected:
  using Kind = Token::Kind;

  // What stands between operators: a condition or something that can be compared. Which of the two a bracket
  // holds is known only after it.
  struct Term {
    std::optional<Condition> condition;
    Operand operand;
    bool bracketed = false;
  };

  // More open brackets than this cannot belong to at most 300 operators without being redundant.
  static constexpr int kMaxDepth = 700;
  static constexpr size_t kMaxOperators = 300;
  static constexpr size_t kMaxInOperands = 100;
  static constexpr size_t kMaxPathSteps = 32;

  class Deeper {
   public:
    explicit Deeper(int& depth, int most = kMaxDepth) : depth_(depth) {
      if (++depth_ > most) throw TooDeep{};
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  // What the grammars differ in.
  virtual Term parse_primary() = 0;               // a bracket, a value, a function or a path
  virtual Step parse_name() = 0;                  // a step of a path
  virtual bool parse_other_test(Term& left) = 0;  // a test that only this grammar knows; into `left`
  virtual void check_operand(const Operand& operand) = 0;
  virtual Condition to_condition(Term term) = 0;

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool at_end() const { return now().kind == Kind::end; }
  [[noreturn]] void fail() const { throw SyntaxError{at_}; }
  void expect_end() const {
    if (!at_end()) fail();
  }
  bool is_symbol(std::string_view text) const { return now().kind == Kind::symbol && now().text == text; }
  bool is_word(std::string_view upper) const {
    return now().kind == Kind::identifier && same_word(now().text, upper);
  }
  bool take_symbol(std::string_view text) {
    if (!is_symbol(text)) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view upper) {
    if (!is_word(upper)) return false;
    ++at_;
    return true;
  }
  void expect_symbol(std::string_view text) {
    if (!take_symbol(text)) fail();
  }
  void expect_word(std::string_view upper) {
    if (!take_word(upper)) fail();
  }
  // A name with a bracket behind it.
  bool at_call() const {
    return now().kind == Kind::identifier && next().kind == Kind::symbol && next().text == "(";
  }
  void count_operator();

  Term parse_or() { return parse_chain("OR", Condition::Kind::any_of, &Descent::parse_and); }
  Term parse_and() { return parse_chain("AND", Condition::Kind::all_of, &Descent::parse_not); }
  Term parse_not();
  Term parse_comparison();

  Operand parse_operand();
  // The rest of "a, b, c)".
  void parse_operands(std::vector<Operand>& operands, std::string_view close);
  Operand parse_sum();
  static Operand to_operand(Term term, size_t where);
  Term leaf(Condition condition);
  void check_in(const Condition& in) const;

  Path parse_path();
  void parse_steps(Path& path);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t operators_ = 0;

 private:
  Term parse_chain(std::string_view word, Condition::Kind kind, Term (Descent::*next)());
  std::optional<Comparator> take_comparator();
  Step parse_index();
};

}  // namespace tabella::expression

#include "expression/descent.h"

#include <algorithm>
#include <charconv>

namespace tabella::expression {

void Descent::count_operator() {
  if (++operators_ > kMaxOperators)
    throw Refused{fmt::format("The expression contains too many operators; operator count: {}", operators_)};
}

// OR, AND: left to right, flattened.
Descent::Term Descent::parse_chain(std::string_view word, Condition::Kind kind, Term (Descent::*next)()) {
  Term first = (this->*next)();
  if (!is_word(word)) return first;
  Condition chain{.kind = kind};
  chain.children.push_back(to_condition(std::move(first)));
  while (take_word(word)) {
    count_operator();
    chain.children.push_back(to_condition((this->*next)()));
  }
  return {.condition = std::move(chain)};
}

Descent::Term Descent::parse_not() {
  const Deeper deeper(depth_);
  if (!take_word("NOT")) return parse_comparison();
  count_operator();
  Condition negation{.kind = Condition::Kind::negation};
  negation.children.push_back(to_condition(parse_not()));
  return {.condition = std::move(negation)};
}

Descent::Term Descent::parse_comparison() {
  Term left = parse_primary();
  if (parse_other_test(left)) return left;
  if (const auto comparator = take_comparator()) {
    Condition c{.kind = Condition::Kind::comparison, .comparator = *comparator};
    c.operands.push_back(to_operand(std::move(left), at_ - 1));
    c.operands.push_back(parse_operand());
    return leaf(std::move(c));
  }
  if (take_word("BETWEEN")) {
    count_operator();
    Condition c{.kind = Condition::Kind::between};
    c.operands.push_back(to_operand(std::move(left), at_ - 1));
    c.operands.push_back(parse_operand());
    expect_word("AND");
    c.operands.push_back(parse_operand());
    return leaf(std::move(c));
  }
  if (take_word("IN")) {
    count_operator();
    Condition c{.kind = Condition::Kind::in};
    c.operands.push_back(to_operand(std::move(left), at_ - 1));
    expect_symbol("(");
    parse_operands(c.operands, ")");
    check_in(c);
    return leaf(std::move(c));
  }
  return left;
}

void Descent::check_in(const Condition& in) const {
  if (in.operands.size() - 1 > kMaxInOperands)
    throw Refused{fmt::format("The IN operator is provided with too many operands; number of operands: {}",
                              in.operands.size() - 1)};
}

Descent::Term Descent::leaf(Condition condition) {
  for (const auto& operand : condition.operands) check_operand(operand);
  return {.condition = std::move(condition)};
}

std::optional<Comparator> Descent::take_comparator() {
  if (now().kind != Kind::symbol) return std::nullopt;
  for (auto c : {Comparator::equal, Comparator::not_equal, Comparator::less, Comparator::less_equal,
                 Comparator::greater, Comparator::greater_equal}) {
    const bool not_equal = c == Comparator::not_equal && now().text == "!=";
    if (now().text != comparator_text(c) && !not_equal) continue;
    ++at_;
    count_operator();
    return c;
  }
  return std::nullopt;
}

void Descent::parse_operands(std::vector<Operand>& operands, std::string_view close) {
  do {
    operands.push_back(parse_operand());
  } while (take_symbol(","));
  expect_symbol(close);
}

Operand Descent::parse_operand() {
  Term term = parse_primary();
  return to_operand(std::move(term), at_);
}

Operand Descent::parse_sum() {
  Operand left = parse_operand();
  if (!is_symbol("+") && !is_symbol("-")) return left;
  count_operator();
  Operand sum{.kind = is_symbol("+") ? Operand::Kind::plus : Operand::Kind::minus};
  ++at_;
  sum.arguments.push_back(std::move(left));
  sum.arguments.push_back(parse_operand());
  return sum;
}

Operand Descent::to_operand(Term term, size_t where) {
  if (term.condition) throw SyntaxError{where};
  return std::move(term.operand);
}

Path Descent::parse_path() {
  Path path;
  path.push_back(parse_name());
  parse_steps(path);
  return path;
}

void Descent::parse_steps(Path& path) {
  while (true) {
    if (take_symbol("."))
      path.push_back(parse_name());
    else if (take_symbol("["))
      path.push_back(parse_index());
    else
      break;
  }
  if (path.size() > kMaxPathSteps)
    throw Refused{
        fmt::format("The document path has too many nesting levels; nesting levels: {}", path.size())};
}

Step Descent::parse_index() {
  if (now().kind != Kind::number) fail();
  const auto text = now().text;
  Step step{.is_index = true};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.index);
  if (error == std::errc{} && end != text.data() + text.size()) fail();
  if (error != std::errc{} || step.index > INT32_MAX)
    throw Refused{fmt::format("List index is not within the allowable range; index: [{}]", text)};
  ++at_;
  expect_symbol("]");
  return step;
}

}  // namespace tabella::expression

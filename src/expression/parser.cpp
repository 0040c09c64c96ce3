#include "expression/parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "expression/lexer.h"

namespace tabella::expression {
namespace {

using Kind = Token::Kind;

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxOperators = 300;
constexpr size_t kMaxInOperands = 100;
constexpr size_t kMaxPathSteps = 32;
// More open brackets than this cannot belong to at most 300 operators without being redundant.
constexpr int kMaxDepth = 700;

constexpr auto kConditionFunctions = std::to_array<std::string_view>(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"});
constexpr auto kUpdateFunctions = std::to_array<std::string_view>({"if_not_exists", "list_append"});
constexpr auto kConditionKeywords = std::to_array<std::string_view>({"AND", "OR", "NOT", "BETWEEN", "IN"});

constexpr auto kUpdateKeywords = std::to_array<std::string_view>({"SET", "REMOVE", "ADD", "DELETE"});

constexpr const char* kRedundant = "The expression has redundant parentheses;";

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A syntax error is thrown within this file and caught where a parse begins: it unwinds the descent, and the
// functions below stay readable. It never leaves the file.
struct SyntaxError {
  size_t at;
};
struct Refused {
  std::string message;
};
struct TooDeep {};

// Faults of meaning, of which AWS reports the first of the most important kind, wherever in the text it
// stands.
struct Faults {
  std::optional<std::string> parentheses;
  std::optional<std::string> unknown_function;
  std::optional<std::string> misused_function;
  std::optional<std::string> reserved;
  std::optional<std::string> section;
};

void note(std::optional<std::string>& fault, std::string message) {
  if (!fault) fault = std::move(message);
}

enum class Grammar { condition, update, projection };

class Parser {
 public:
  Parser(std::string_view text, Grammar grammar)
      : tokens_(tokenize(text)), grammar_(grammar), update_(grammar == Grammar::update) {}

  Condition condition() {
    auto term = parse_or();
    expect_end();
    return to_condition(std::move(term));
  }

  Update update() {
    Update actions;
    std::vector<std::string> sections;
    do {
      parse_section(actions, sections);
    } while (!at_end());
    return actions;
  }

  Projection projection() {
    Projection paths;
    do {
      paths.push_back(parse_path());
    } while (take_symbol(","));
    expect_end();
    return paths;
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  const Faults& faults() const { return faults_; }

 private:
  // What stands between operators: a condition or something that can be compared. Which of the two a bracket
  // holds is known only after it.
  struct Term {
    std::optional<Condition> condition;
    Operand operand;
    bool bracketed = false;
  };

  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth) throw TooDeep{};
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  const Token& now() const { return tokens_[at_]; }
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
  void count_operator() {
    if (++operators_ > kMaxOperators)
      throw Refused{
          fmt::format("The expression contains too many operators; operator count: {}", operators_)};
  }

  bool at_keyword() const {
    const auto is_now = [&](auto word) { return same_word(now().text, word); };
    if (now().kind != Kind::identifier || grammar_ == Grammar::projection) return false;
    return update_ ? std::ranges::any_of(kUpdateKeywords, is_now)
                   : std::ranges::any_of(kConditionKeywords, is_now);
  }

  // OR, AND: left to right, flattened.
  Term parse_chain(std::string_view word, Condition::Kind kind, Term (Parser::*next)()) {
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

  Term parse_or() { return parse_chain("OR", Condition::Kind::any_of, &Parser::parse_and); }
  Term parse_and() { return parse_chain("AND", Condition::Kind::all_of, &Parser::parse_not); }

  Term parse_not() {
    const Deeper deeper(depth_);
    if (!take_word("NOT")) return parse_comparison();
    count_operator();
    Condition negation{.kind = Condition::Kind::negation};
    negation.children.push_back(to_condition(parse_not()));
    return {.condition = std::move(negation)};
  }

  Term parse_comparison() {
    Term left = parse_primary();
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
      if (!take_word("AND")) fail();
      c.operands.push_back(parse_operand());
      return leaf(std::move(c));
    }
    if (take_word("IN")) {
      count_operator();
      Condition c{.kind = Condition::Kind::in};
      c.operands.push_back(to_operand(std::move(left), at_ - 1));
      expect_symbol("(");
      parse_operands(c.operands);
      if (c.operands.size() - 1 > kMaxInOperands)
        throw Refused{
            fmt::format("The IN operator is provided with too many operands; number of operands: {}",
                        c.operands.size() - 1)};
      return leaf(std::move(c));
    }
    return left;
  }

  Term leaf(Condition condition) {
    for (const auto& operand : condition.operands) refuse_nested_function(operand);
    return {.condition = std::move(condition)};
  }

  std::optional<Comparator> take_comparator() {
    if (now().kind != Kind::symbol) return std::nullopt;
    for (auto c : {Comparator::equal, Comparator::not_equal, Comparator::less, Comparator::less_equal,
                   Comparator::greater, Comparator::greater_equal}) {
      if (now().text != comparator_text(c)) continue;
      ++at_;
      count_operator();
      return c;
    }
    return std::nullopt;
  }

  // A bracket, a value, a function or a path.
  Term parse_primary() {
    const Deeper deeper(depth_);
    if (take_symbol("(")) {
      Term inner = update_ ? Term{.operand = parse_sum()} : parse_or();
      expect_symbol(")");
      if (inner.bracketed) note(faults_.parentheses, kRedundant);
      inner.bracketed = true;
      const bool path = !inner.condition && inner.operand.kind == Operand::Kind::path;
      if (path && grammar_ == Grammar::condition) parse_steps(inner.operand.path);
      return inner;
    }
    if (now().kind == Kind::value && now().text.size() > 1) {
      Operand value{.kind = Operand::Kind::value, .text = std::string(now().text)};
      ++at_;
      return {.operand = std::move(value)};
    }
    if (now().kind == Kind::identifier && !at_keyword() && tokens_[at_ + 1].kind == Kind::symbol &&
        tokens_[at_ + 1].text == "(")
      return {.operand = parse_function()};
    return {.operand = Operand{.kind = Operand::Kind::path, .path = parse_path()}};
  }

  Operand parse_function() {
    Operand function{.kind = Operand::Kind::function, .text = std::string(now().text)};
    at_ += 2;
    const bool condition_function = contains(kConditionFunctions, function.text);
    const bool update_function = contains(kUpdateFunctions, function.text);
    if (!condition_function && !update_function)
      note(faults_.unknown_function, fmt::format("Invalid function name; function: {}", function.text));
    else if (update_ ? condition_function : update_function)
      misused(function.text);
    parse_operands(function.arguments);
    for (const auto& argument : function.arguments) refuse_nested_function(argument);
    return function;
  }

  // The rest of "(a, b, c)".
  void parse_operands(std::vector<Operand>& operands) {
    do {
      operands.push_back(parse_operand());
    } while (take_symbol(","));
    expect_symbol(")");
  }

  Operand parse_operand() {
    Term term = parse_primary();
    return to_operand(std::move(term), at_);
  }

  Operand to_operand(Term term, size_t where) {
    if (term.condition) throw SyntaxError{where};
    return std::move(term.operand);
  }

  Condition to_condition(Term term) {
    if (term.condition) return std::move(*term.condition);
    if (term.operand.kind != Operand::Kind::function) fail();
    if (term.operand.text == "size") misused(term.operand.text);
    return {.kind = Condition::Kind::function,
            .function = std::move(term.operand.text),
            .operands = std::move(term.operand.arguments)};
  }

  void misused(std::string_view function) {
    note(faults_.misused_function,
         fmt::format("The function is not allowed to be used this way in an expression; function: {}",
                     function));
  }

  // Conditions know one function that gives a value, size(); updates nest if_not_exists() only.
  void refuse_nested_function(const Operand& operand) {
    if (operand.kind != Operand::Kind::function) return;
    const bool fits = update_ ? operand.text == "if_not_exists" : operand.text == "size";
    const bool known =
        contains(kConditionFunctions, operand.text) || contains(kUpdateFunctions, operand.text);
    if (known && !fits) misused(operand.text);
  }

  Path parse_path() {
    Path path;
    path.push_back(parse_name());
    parse_steps(path);
    return path;
  }

  void parse_steps(Path& path) {
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

  Step parse_name() {
    if (now().kind == Kind::identifier && !at_keyword()) {
      if (is_reserved_word(now().text))
        note(faults_.reserved,
             fmt::format("Attribute name is a reserved keyword; reserved keyword: {}", now().text));
    } else if (now().kind != Kind::name || now().text.size() < 2) {
      fail();
    }
    return {.name = std::string(tokens_[at_++].text)};
  }

  Step parse_index() {
    if (now().kind != Kind::number) fail();
    const auto text = now().text;
    Step step{.is_index = true};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.index);
    if (error != std::errc{} || step.index > INT32_MAX)
      throw Refused{fmt::format("List index is not within the allowable range; index: [{}]", text)};
    ++at_;
    expect_symbol("]");
    return step;
  }

  void parse_section(Update& actions, std::vector<std::string>& sections) {
    using Action = UpdateAction::Kind;
    static constexpr std::array<std::pair<std::string_view, Action>, 4> kSections = {
        {{"SET", Action::set}, {"REMOVE", Action::remove}, {"ADD", Action::add}, {"DELETE", Action::erase}}};
    const auto section = std::ranges::find_if(kSections, [&](const auto& s) { return is_word(s.first); });
    if (section == kSections.end()) fail();
    ++at_;
    if (std::ranges::find(sections, section->first) != sections.end())
      note(faults_.section,
           fmt::format("The \"{}\" section can only be used once in an update expression;", section->first));
    sections.emplace_back(section->first);
    do {
      actions.push_back(parse_action(section->second));
    } while (take_symbol(","));
  }

  UpdateAction parse_action(UpdateAction::Kind kind) {
    UpdateAction action{.kind = kind, .path = parse_path()};
    if (kind == UpdateAction::Kind::remove) return action;
    if (kind == UpdateAction::Kind::set) {
      expect_symbol("=");
      action.value = parse_sum();
      return action;
    }
    if (now().kind != Kind::value) fail();
    action.value = parse_operand();
    return action;
  }

  Operand parse_sum() {
    Operand left = parse_operand();
    if (!is_symbol("+") && !is_symbol("-")) return left;
    count_operator();
    Operand sum{.kind = is_symbol("+") ? Operand::Kind::plus : Operand::Kind::minus};
    ++at_;
    sum.arguments.push_back(std::move(left));
    sum.arguments.push_back(parse_operand());
    return sum;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  const Grammar grammar_;
  const bool update_;
  int depth_ = 0;
  size_t operators_ = 0;
  Faults faults_;
};

std::optional<std::string> most_important(const Faults& faults, Grammar grammar) {
  if (grammar == Grammar::update) {
    for (const auto* fault :
         {&faults.reserved, &faults.unknown_function, &faults.misused_function, &faults.section})
      if (*fault) return *fault;
    return std::nullopt;
  }
  for (const auto* fault :
       {&faults.parentheses, &faults.unknown_function, &faults.misused_function, &faults.reserved})
    if (*fault) return *fault;
  return std::nullopt;
}

template <class Tree>
Checked<Tree> parse(std::string_view text, Grammar grammar, Tree (Parser::*start)()) {
  if (text.empty()) return invalid("The expression can not be empty;");
  if (text.size() > kMaxText)
    return invalid(fmt::format("Expression size has exceeded the maximum allowed size; expression size: {}",
                               text.size()));
  Parser parser(text, grammar);
  try {
    Tree tree = (parser.*start)();
    if (auto fault = most_important(parser.faults(), grammar)) return invalid(std::move(*fault));
    return tree;
  } catch (const SyntaxError& error) {
    return invalid(syntax_error(parser.tokens(), error.at));
  } catch (Refused& refused) {
    return invalid(std::move(refused.message));
  } catch (const TooDeep&) {
    // With so few operators, most of the brackets were redundant or some function's.
    return invalid(most_important(parser.faults(), grammar).value_or(kRedundant));
  }
}

}  // namespace

std::string describe_path(const Path& path) {
  std::string out = "[";
  for (const auto& step : path) {
    if (out.size() > 1) out.append(", ");
    out.append(step.is_index ? fmt::format("[{}]", step.index) : step.name);
  }
  out.push_back(']');
  return out;
}

std::string_view comparator_text(Comparator comparator) {
  switch (comparator) {
    case Comparator::equal: return "=";
    case Comparator::not_equal: return "<>";
    case Comparator::less: return "<";
    case Comparator::less_equal: return "<=";
    case Comparator::greater: return ">";
    case Comparator::greater_equal: return ">=";
  }
  return "";
}

Checked<Condition> parse_condition(std::string_view text) {
  return parse(text, Grammar::condition, &Parser::condition);
}
Checked<Update> parse_update(std::string_view text) { return parse(text, Grammar::update, &Parser::update); }
Checked<Projection> parse_projection(std::string_view text) {
  return parse(text, Grammar::projection, &Parser::projection);
}

}  // namespace tabella::expression

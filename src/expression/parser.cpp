#include "expression/parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "expression/descent.h"

namespace tabella::expression {
namespace {

constexpr size_t kMaxText = 4096;

constexpr auto kConditionFunctions = std::to_array<std::string_view>(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"});
constexpr auto kUpdateFunctions = std::to_array<std::string_view>({"if_not_exists", "list_append"});
constexpr auto kConditionKeywords = std::to_array<std::string_view>({"AND", "OR", "NOT", "BETWEEN", "IN"});

constexpr auto kUpdateKeywords = std::to_array<std::string_view>({"SET", "REMOVE", "ADD", "DELETE"});

constexpr const char* kRedundant = "The expression has redundant parentheses;";

template <size_t N>
bool is_listed(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

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

class Parser final : public Descent {
 public:
  Parser(std::string_view text, Grammar grammar)
      : Descent(tokenize(text, Dialect::expression)), grammar_(grammar) {}

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

  const Faults& faults() const { return faults_; }

 private:
  bool updating() const { return grammar_ == Grammar::update; }

  bool at_keyword() const {
    const auto is_now = [&](auto word) { return same_word(now().text, word); };
    if (now().kind != Kind::identifier || grammar_ == Grammar::projection) return false;
    return updating() ? std::ranges::any_of(kUpdateKeywords, is_now)
                      : std::ranges::any_of(kConditionKeywords, is_now);
  }

  Term parse_primary() override {
    const Deeper deeper(depth_);
    if (take_symbol("(")) {
      Term inner = updating() ? Term{.operand = parse_sum()} : parse_or();
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
    if (at_call() && !at_keyword()) return {.operand = parse_function()};
    return {.operand = Operand{.kind = Operand::Kind::path, .path = parse_path()}};
  }

  bool parse_other_test(Term&) override { return false; }

  Operand parse_function() {
    Operand function{.kind = Operand::Kind::function, .text = std::string(now().text)};
    at_ += 2;
    const bool condition_function = is_listed(kConditionFunctions, function.text);
    const bool update_function = is_listed(kUpdateFunctions, function.text);
    if (!condition_function && !update_function)
      note(faults_.unknown_function, fmt::format("Invalid function name; function: {}", function.text));
    else if (updating() ? condition_function : update_function)
      misused(function.text);
    parse_operands(function.arguments, ")");
    for (const auto& argument : function.arguments) check_operand(argument);
    return function;
  }

  Condition to_condition(Term term) override {
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
  void check_operand(const Operand& operand) override {
    if (operand.kind != Operand::Kind::function) return;
    const bool fits = updating() ? operand.text == "if_not_exists" : operand.text == "size";
    const bool known =
        is_listed(kConditionFunctions, operand.text) || is_listed(kUpdateFunctions, operand.text);
    if (known && !fits) misused(operand.text);
  }

  Step parse_name() override {
    if (now().kind == Kind::identifier && !at_keyword()) {
      if (is_reserved_word(now().text))
        note(faults_.reserved,
             fmt::format("Attribute name is a reserved keyword; reserved keyword: {}", now().text));
    } else if (now().kind != Kind::name || now().text.size() < 2) {
      fail();
    }
    return {.name = std::string(tokens_[at_++].text)};
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

  const Grammar grammar_;
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

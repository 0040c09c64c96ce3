#include "expression/legacy.h"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

namespace tabella::expression {
namespace {

using item::Type;
using item::ValueView;

constexpr const char* kReversed =
    "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound";

std::unexpected<Invalid> wrong_parameters(const std::string& what) {
  return invalid("One or more parameter values were invalid: " + what);
}

bool count_fits(std::string_view op, size_t count) {
  if (op == "NULL" || op == "NOT_NULL") return count == 0;
  if (op == "BETWEEN") return count == 2;
  if (op == "IN") return count >= 1;
  return count == 1;
}

bool type_fits(std::string_view op, Type type) {
  if (op == "EQ" || op == "NE" || op == "NULL" || op == "NOT_NULL") return true;
  if (op == "BEGINS_WITH") return type == Type::S || type == Type::B;
  if ((op == "CONTAINS" || op == "NOT_CONTAINS") && (type == Type::BOOL || type == Type::NUL)) return true;
  return item::is_scalar_key(type);
}

Checked<> check_arguments(std::string_view op, std::span<const std::string> values) {
  if (!count_fits(op, values.size()))
    return wrong_parameters(fmt::format("Invalid number of argument(s) for the {} ComparisonOperator", op));
  for (const auto& value : values)
    if (ValueView(value).type() != ValueView(values[0]).type())
      return wrong_parameters("AttributeValues inside AttributeValueList must be of same type");
  for (const auto& value : values)
    if (const Type type = ValueView(value).type(); !type_fits(op, type))
      return wrong_parameters(fmt::format("ComparisonOperator {} is not valid for {} AttributeValue type", op,
                                          item::type_name(type)));
  if (op == "BETWEEN" && item::compare(ValueView(values[0]), ValueView(values[1])).value_or(0) > 0)
    return invalid(kReversed);
  return {};
}

std::span<const std::string> arguments_of(const LegacyCondition& c) {
  if (c.values) return *c.values;
  if (c.value) return {&*c.value, 1};
  return {};
}

Checked<> check_expected(const LegacyCondition& c) {
  if (c.values && c.value)
    return wrong_parameters(
        fmt::format("Value and AttributeValueList cannot be used together for Attribute: {}", c.attribute));
  if (c.comparison) {
    if (c.exists)
      return wrong_parameters(fmt::format(
          "Exists and ComparisonOperator cannot be used together for Attribute: {}", c.attribute));
    const bool needs_values = *c.comparison != "NULL" && *c.comparison != "NOT_NULL";
    if (needs_values && !c.values && !c.value)
      return wrong_parameters(fmt::format(
          "Value or AttributeValueList must be used with ComparisonOperator: {} for Attribute: {}",
          *c.comparison, c.attribute));
    return check_arguments(*c.comparison, arguments_of(c));
  }
  if (c.values)
    return wrong_parameters(fmt::format(
        "AttributeValueList can only be used with a ComparisonOperator for Attribute: {}", c.attribute));
  if (c.exists.value_or(true) && !c.value)
    return wrong_parameters(fmt::format("Value must be provided when Exists is {} for Attribute: {}",
                                        c.exists ? "true" : "null", c.attribute));
  if (!c.exists.value_or(true) && c.value)
    return wrong_parameters(
        fmt::format("Value cannot be used when Exists is false for Attribute: {}", c.attribute));
  return {};
}

Operand attribute(const std::string& name) {
  return {.kind = Operand::Kind::path, .path = {Step{.name = name}}};
}

Operand literal(ValueView value) { return {.kind = Operand::Kind::value, .value = value}; }

Condition function(std::string name, const LegacyCondition& c) {
  Condition condition{.kind = Condition::Kind::function, .function = std::move(name)};
  condition.operands.push_back(attribute(c.attribute));
  for (const auto& value : arguments_of(c)) condition.operands.push_back(literal(ValueView(value)));
  return condition;
}

Condition comparison(Comparator comparator, const LegacyCondition& c) {
  Condition condition = function({}, c);
  condition.kind = Condition::Kind::comparison;
  condition.comparator = comparator;
  return condition;
}

Condition compared(const std::string& name, Comparator comparator, ValueView value) {
  Condition condition{.kind = Condition::Kind::comparison, .comparator = comparator};
  condition.operands.push_back(attribute(name));
  condition.operands.push_back(literal(value));
  return condition;
}

// IN with values in order. AWS limits their number in expressions only, and a filter is evaluated on every
// item of a page: many become a search tree, whose halves are told apart by the value in the middle.
Condition is_one_of(const std::string& name, std::span<const ValueView> values) {
  constexpr size_t kFew = 16;
  if (values.size() <= kFew) {
    Condition condition{.kind = Condition::Kind::in};
    condition.operands.push_back(attribute(name));
    for (const auto value : values) condition.operands.push_back(literal(value));
    return condition;
  }
  const auto half = values.size() / 2;
  Condition below{.kind = Condition::Kind::all_of};
  below.children.push_back(compared(name, Comparator::less, values[half]));
  below.children.push_back(is_one_of(name, values.first(half)));
  Condition above{.kind = Condition::Kind::all_of};
  above.children.push_back(compared(name, Comparator::greater_equal, values[half]));
  above.children.push_back(is_one_of(name, values.subspan(half)));
  Condition either{.kind = Condition::Kind::any_of};
  either.children.push_back(std::move(below));
  either.children.push_back(std::move(above));
  return either;
}

Condition in_condition(const LegacyCondition& c) {
  std::vector<ValueView> values;
  for (const auto& value : arguments_of(c)) values.emplace_back(value);
  std::ranges::sort(values, {}, &ValueView::content);  // all scalars of one type
  return is_one_of(c.attribute, values);
}

Condition to_condition(const LegacyCondition& c) {
  const std::string_view op = c.comparison              ? std::string_view(*c.comparison)
                              : c.exists.value_or(true) ? "EQ"
                                                        : "NULL";
  if (op == "EQ") return comparison(Comparator::equal, c);
  if (op == "NE") return comparison(Comparator::not_equal, c);
  if (op == "LT") return comparison(Comparator::less, c);
  if (op == "LE") return comparison(Comparator::less_equal, c);
  if (op == "GT") return comparison(Comparator::greater, c);
  if (op == "GE") return comparison(Comparator::greater_equal, c);
  if (op == "NULL") return function("attribute_not_exists", c);
  if (op == "NOT_NULL") return function("attribute_exists", c);
  if (op == "CONTAINS") return function("contains", c);
  if (op == "BEGINS_WITH") return function("begins_with", c);
  if (op == "NOT_CONTAINS") {
    // Unlike NOT contains(…), it is false for an attribute that is not there.
    Condition exists{.kind = Condition::Kind::function, .function = "attribute_exists"};
    exists.operands.push_back(attribute(c.attribute));
    Condition negation{.kind = Condition::Kind::negation};
    negation.children.push_back(function("contains", c));
    Condition both{.kind = Condition::Kind::all_of};
    both.children.push_back(std::move(exists));
    both.children.push_back(std::move(negation));
    return both;
  }
  if (op == "IN") return in_condition(c);
  Condition condition = function({}, c);
  condition.kind = Condition::Kind::between;
  return condition;
}

Condition combine_all(const std::vector<LegacyCondition>& conditions, Combine combine) {
  Condition all{.kind = combine == Combine::all ? Condition::Kind::all_of : Condition::Kind::any_of};
  for (const auto& c : conditions) all.children.push_back(to_condition(c));
  return all;
}

KeyPredicate::Operator legacy_key_operator(std::string_view op) {
  using Op = KeyPredicate::Operator;
  if (op == "EQ") return Op::equal;
  if (op == "LT") return Op::less;
  if (op == "LE") return Op::less_equal;
  if (op == "GT") return Op::greater;
  if (op == "GE") return Op::greater_equal;
  if (op == "BETWEEN") return Op::between;
  if (op == "BEGINS_WITH") return Op::begins_with;
  return Op::unindexable;
}

Checked<> check_update(const LegacyUpdate& update) {
  if (!update.value) {
    if (update.action == "DELETE") return {};
    return wrong_parameters("Only DELETE action is allowed when no attribute value is specified");
  }
  const Type type = ValueView(*update.value).type();
  if (update.action == "DELETE" && !item::is_set(type))
    return wrong_parameters(
        fmt::format("DELETE action with value is not supported for the type {}", item::type_name(type)));
  if (update.action == "ADD" && !item::is_set(type) && type != Type::N && type != Type::L)
    return wrong_parameters(
        fmt::format("ADD action is not supported for the type {}", item::type_name(type)));
  return {};
}

UpdateAction::Kind action_kind(const LegacyUpdate& update) {
  if (update.action == "ADD") return UpdateAction::Kind::add;
  if (update.action == "DELETE") return update.value ? UpdateAction::Kind::erase : UpdateAction::Kind::remove;
  return UpdateAction::Kind::set;
}

}  // namespace

Checked<Condition> from_expected(const std::vector<LegacyCondition>& expected, Combine combine) {
  for (const auto& c : expected) TABELLA_TRY(check_expected(c));
  return combine_all(expected, combine);
}

Checked<Condition> from_filter(const std::vector<LegacyCondition>& filter, Combine combine) {
  for (const auto& c : filter) TABELLA_TRY(check_arguments(*c.comparison, arguments_of(c)));
  return combine_all(filter, combine);
}

Checked<std::vector<KeyPredicate>> from_key_conditions(const std::vector<LegacyCondition>& conditions) {
  std::vector<KeyPredicate> predicates;
  for (const auto& c : conditions) {
    TABELLA_TRY(check_arguments(*c.comparison, arguments_of(c)));
    KeyPredicate predicate{.attribute = c.attribute, .op = legacy_key_operator(*c.comparison)};
    for (const auto& value : arguments_of(c)) predicate.values.emplace_back(value);
    predicates.push_back(std::move(predicate));
  }
  return predicates;
}

Checked<> check_key_predicates(const std::vector<KeyPredicate>& predicates) {
  for (const auto& predicate : predicates)
    if (predicate.op == KeyPredicate::Operator::between &&
        item::compare(predicate.values[0], predicate.values[1]).value_or(0) > 0)
      return invalid(kReversed);
  return {};
}

Checked<Update> from_updates(const std::vector<LegacyUpdate>& updates) {
  Update actions;
  for (const auto& update : updates) {
    TABELLA_TRY(check_update(update));
    UpdateAction action{
        .kind = action_kind(update), .path = {Step{.name = update.attribute}}, .legacy = true};
    if (update.value) action.value = literal(ValueView(*update.value));
    actions.push_back(std::move(action));
  }
  return actions;
}

Checked<Projection> from_attributes_to_get(const std::vector<std::string>& attributes) {
  Projection projection;
  std::set<std::string_view> seen;
  for (const auto& name : attributes) {
    if (!seen.insert(name).second)
      return wrong_parameters(fmt::format("Duplicate value in attribute name: {}", name));
    projection.push_back({Step{.name = name}});
  }
  return projection;
}

}  // namespace tabella::expression

#include "expression/bind.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "expression/path_tree.h"
#include "item/attribute_json.h"

namespace tabella::expression {
namespace {

using item::Type;

const Names kNoNames;

std::string undefined_name(std::string_view name) {
  return fmt::format(
      "An expression attribute name used in the document path is not defined; attribute name: {}", name);
}

std::string undefined_value(std::string_view value) {
  return fmt::format("An expression attribute value used in expression is not defined; attribute value: {}",
                     value);
}

// Fills in a tree's references and remembers the first that are not defined.
struct Resolver {
  Bindings& bindings;
  std::optional<std::string> first_fault;
  std::optional<std::string> name_fault;
  std::optional<std::string> value_fault;

  void resolve(Path& path) {
    if (bindings.names_are_literal()) return;
    for (auto& step : path) {
      if (step.is_index || !step.name.starts_with('#')) continue;
      if (const auto* name = bindings.name(step.name)) {
        step.name = *name;
        continue;
      }
      fault(name_fault, undefined_name(step.name));
    }
  }

  void resolve(Operand& operand) {
    if (operand.kind == Operand::Kind::path) return resolve(operand.path);
    if (operand.kind == Operand::Kind::value) {
      if (const auto value = bindings.value(operand.text))
        operand.value = *value;
      else
        fault(value_fault, undefined_value(operand.text));
      return;
    }
    for (auto& argument : operand.arguments) resolve(argument);
  }

  void fault(std::optional<std::string>& kind, std::string message) {
    if (!first_fault) first_fault = message;
    if (!kind) kind = std::move(message);
  }
};

std::unexpected<Invalid> wrong_type(std::string_view function, std::string_view type) {
  return invalid(fmt::format(
      "Incorrect operand type for operator or function; operator or function: {}, operand type: {}", function,
      type));
}

Checked<> check_count(std::string_view function, const std::vector<Operand>& operands, size_t expected) {
  if (operands.size() == expected) return {};
  return invalid(
      fmt::format("Incorrect number of operands for operator or function; operator or function: {}, number "
                  "of operands: {}",
                  function, operands.size()));
}

Checked<> check_distinct(std::string_view op, const std::vector<Operand>& operands) {
  if (operands.empty() || operands[0].kind != Operand::Kind::path) return {};
  const auto& first = operands[0].path;
  const bool repeated = std::any_of(operands.begin() + 1, operands.end(), [&](const Operand& o) {
    return o.kind == Operand::Kind::path && o.path == first;
  });
  if (!repeated) return {};
  return invalid(
      fmt::format("The first operand must be distinct from the remaining operands for this operator or "
                  "function; operator: {}, "
                  "first operand: {}",
                  op, describe_path(first)));
}

Checked<> check_document_path(std::string_view function, const Operand& operand) {
  if (operand.kind == Operand::Kind::path) return {};
  return invalid(
      fmt::format("Operator or function requires a document path; operator or function: {}", function));
}

Checked<> check_ordered(std::string_view op, const std::vector<Operand>& operands) {
  for (const auto& operand : operands)
    if (const auto type = known_type(operand); type && !item::is_scalar_key(*type))
      return wrong_type(op, item::type_name(*type));
  return {};
}

Checked<> check_between(const std::vector<Operand>& operands) {
  TABELLA_TRY(check_ordered("BETWEEN", operands));
  const auto& low = operands[1];
  const auto& high = operands[2];
  if (low.kind != Operand::Kind::value || high.kind != Operand::Kind::value) return {};
  const auto bounds = [&] {
    return fmt::format("lower bound operand: AttributeValue: {}, upper bound operand: AttributeValue: {}",
                       item::describe_value(low.value), item::describe_value(high.value));
  };
  const auto order = item::compare(low.value, high.value);
  if (!order)
    return invalid("The BETWEEN operator requires same data type for lower and upper bounds; " + bounds());
  if (*order > 0)
    return invalid("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; " +
                   bounds());
  return {};
}

Checked<> check_attribute_type(const Operand& operand) {
  if (operand.kind != Operand::Kind::value)
    return wrong_type("attribute_type",
                      operand.kind == Operand::Kind::path ? "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}" : "N");
  if (operand.value.type() != Type::S)
    return wrong_type("attribute_type", item::type_name(operand.value.type()));
  if (!item::type_from_name(operand.value.content()))
    return invalid(fmt::format(
        "Invalid attribute type name found; type: {}, valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}",
        operand.value.content()));
  return {};
}

Checked<> check_size(const Operand& function) {
  TABELLA_TRY(check_count("size", function.arguments, 1));
  const auto type = known_type(function.arguments[0]);
  if (type && (*type == Type::N || *type == Type::BOOL || *type == Type::NUL))
    return wrong_type("size", item::type_name(*type));
  return {};
}

Checked<> check_function(const Condition& condition) {
  const auto& name = condition.function;
  const auto& operands = condition.operands;
  const bool existence = name == "attribute_exists" || name == "attribute_not_exists";
  TABELLA_TRY(check_count(name, operands, existence ? 1 : 2));
  if (existence) return check_document_path(name, operands[0]);
  TABELLA_TRY(check_distinct(name, operands));
  if (name == "attribute_type") return check_attribute_type(operands[1]);
  if (name == "begins_with") {
    for (const auto& operand : operands)
      if (const auto type = known_type(operand); type && *type != Type::S && *type != Type::B)
        return wrong_type(name, item::type_name(*type));
  }
  return {};
}

Checked<> check_leaf(const Condition& condition) {
  for (const auto& operand : condition.operands)
    if (operand.kind == Operand::Kind::function) TABELLA_TRY(check_size(operand));
  switch (condition.kind) {
    case Condition::Kind::comparison: {
      const auto op = comparator_text(condition.comparator);
      TABELLA_TRY(check_distinct(op, condition.operands));
      const bool any_type =
          condition.comparator == Comparator::equal || condition.comparator == Comparator::not_equal;
      return any_type ? Checked<>{} : check_ordered(op, condition.operands);
    }
    case Condition::Kind::between: return check_between(condition.operands);
    case Condition::Kind::in: return check_distinct("IN", condition.operands);
    case Condition::Kind::function: return check_function(condition);
    case Condition::Kind::all_of:
    case Condition::Kind::any_of:
    case Condition::Kind::negation: break;
  }
  return {};
}

// In place, left to right: AWS reports the first leaf with a fault.
Checked<> bind_condition(Condition& condition, Bindings& bindings) {
  for (auto& child : condition.children) TABELLA_TRY(bind_condition(child, bindings));
  if (!condition.children.empty()) return {};
  Resolver resolver{bindings};
  for (auto& operand : condition.operands) resolver.resolve(operand);
  if (resolver.first_fault) return invalid(std::move(*resolver.first_fault));
  return check_leaf(condition);
}

Checked<> check_disjoint(const Path& one, const Path& two) {
  const auto refuse = [&](std::string_view how) {
    return invalid(
        fmt::format("Two document paths {} with each other; must remove or rewrite one of these paths; path "
                    "one: {}, path two: {}",
                    how, describe_path(one), describe_path(two)));
  };
  for (size_t i = 0; i < std::min(one.size(), two.size()); ++i) {
    if (one[i].is_index != two[i].is_index) return refuse("conflict");
    if (one[i] != two[i]) return {};
  }
  return refuse("overlap");
}

// Whether a path can join those in the tree, which it then does.
bool joins(PathTree<std::monostate>& tree, const Path& path) {
  auto* at = &tree;
  for (const auto& step : path) {
    const bool other_kind = step.is_index ? !at->members.empty() : !at->elements.empty();
    if (at->leaf || other_kind) return false;
    at = &at->child(step);
  }
  if (at->leaf || at->has_children()) return false;
  at->leaf.emplace();
  return true;
}

Checked<> check_all_disjoint(const std::vector<const Path*>& paths) {
  PathTree<std::monostate> tree;
  for (size_t j = 0; j < paths.size(); ++j) {
    if (joins(tree, *paths[j])) continue;
    for (size_t i = 0; i < j; ++i) TABELLA_TRY(check_disjoint(*paths[i], *paths[j]));
  }
  return {};
}

std::string_view long_type_name(Type type) {
  switch (type) {
    case Type::S: return "STRING";
    case Type::N: return "NUMBER";
    case Type::B: return "BINARY";
    case Type::BOOL: return "BOOLEAN";
    case Type::NUL: return "NULL";
    case Type::L: return "LIST";
    case Type::M: return "MAP";
    case Type::SS:
    case Type::NS:
    case Type::BS: break;
  }
  return item::type_name(type);
}

Checked<> check_add_or_delete(const UpdateAction& action) {
  const bool add = action.kind == UpdateAction::Kind::add;
  const Type type = action.value.value.type();
  if (item::is_set(type) || (add && type == Type::N)) return {};
  return invalid(
      fmt::format("Incorrect operand type for operator or function; operator: {}, operand type: {}",
                  add ? "ADD" : "DELETE", long_type_name(type)));
}

Checked<> check_set_value(const Operand& operand) {
  if (operand.kind == Operand::Kind::function) {
    TABELLA_TRY(check_count(operand.text, operand.arguments, 2));
    if (operand.text == "if_not_exists") {
      TABELLA_TRY(check_document_path(operand.text, operand.arguments[0]));
    } else {
      for (const auto& argument : operand.arguments)
        if (argument.kind == Operand::Kind::value && argument.value.type() != Type::L)
          return wrong_type(operand.text, item::type_name(argument.value.type()));
    }
  }
  if (operand.kind == Operand::Kind::plus || operand.kind == Operand::Kind::minus) {
    for (const auto& argument : operand.arguments)
      if (argument.kind == Operand::Kind::value && argument.value.type() != Type::N)
        return wrong_type(operand.kind == Operand::Kind::plus ? "+" : "-",
                          item::type_name(argument.value.type()));
  }
  for (const auto& argument : operand.arguments) TABELLA_TRY(check_set_value(argument));
  return {};
}

}  // namespace

std::optional<Type> known_type(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::value: return operand.value.type();
    case Operand::Kind::function: return operand.text == "size" ? std::optional(Type::N) : std::nullopt;
    case Operand::Kind::plus:
    case Operand::Kind::minus: return Type::N;
    case Operand::Kind::path: break;
  }
  return std::nullopt;
}

Bindings::Bindings(const Names& names, item::ItemView values) : names_(names), used_names_(names.size()) {
  if (!values.bytes().empty())
    for (item::Attributes a(values); a.next();) values_.emplace_back(a.name(), a.value());
  used_values_.resize(values_.size());
}

Bindings::Bindings(std::vector<std::pair<std::string_view, item::ValueView>> values)
    : names_(kNoNames), names_are_literal_(true), values_(std::move(values)), used_values_(values_.size()) {}

namespace {

// The place of the first pair that begins with `reference`; the number of pairs if there is none.
template <class Pairs, class Places>
size_t place_of(const Pairs& pairs, Places& places, std::string_view reference) {
  constexpr size_t kFew = 16;
  if (pairs.size() <= kFew)
    return static_cast<size_t>(
        std::ranges::find(pairs, reference, [](const auto& pair) -> std::string_view { return pair.first; }) -
        pairs.begin());
  if (places.empty())
    for (size_t i = 0; i < pairs.size(); ++i) places.emplace(pairs[i].first, i);
  const auto at = places.find(reference);
  return at == places.end() ? pairs.size() : at->second;
}

}  // namespace

const std::string* Bindings::name(std::string_view reference) {
  const auto i = place_of(names_, name_places_, reference);
  if (i == names_.size()) return nullptr;
  used_names_[i] = true;
  return &names_[i].second;
}

std::optional<item::ValueView> Bindings::value(std::string_view reference) {
  const auto i = place_of(values_, value_places_, reference);
  if (i == values_.size()) return std::nullopt;
  used_values_[i] = true;
  return values_[i].second;
}

Checked<> Bindings::check_all_used() const {
  const auto complain = [](std::string_view what, std::vector<std::string_view> unused) -> Checked<> {
    if (unused.empty()) return {};
    std::ranges::sort(unused);
    return invalid(fmt::format("Value provided in {} unused in expressions: keys: {{{}}}", what,
                               fmt::join(unused, ", ")));
  };
  std::vector<std::string_view> unused;
  for (size_t i = 0; i < names_.size(); ++i)
    if (!used_names_[i]) unused.push_back(names_[i].first);
  TABELLA_TRY(complain("ExpressionAttributeNames", std::move(unused)));
  unused.clear();
  for (size_t i = 0; i < values_.size(); ++i)
    if (!used_values_[i]) unused.push_back(values_[i].first);
  return complain("ExpressionAttributeValues", std::move(unused));
}

Checked<Condition> bind(const Condition& tree, Bindings& bindings) {
  Condition bound = tree;
  TABELLA_TRY(bind_condition(bound, bindings));
  return bound;
}

Checked<Update> bind(const Update& tree, Bindings& bindings) {
  Update bound = tree;
  Resolver resolver{bindings};
  for (auto& action : bound) {
    resolver.resolve(action.path);
    if (action.kind != UpdateAction::Kind::remove) resolver.resolve(action.value);
  }
  if (resolver.name_fault) return invalid(std::move(*resolver.name_fault));
  if (resolver.value_fault) return invalid(std::move(*resolver.value_fault));
  std::vector<const Path*> paths;
  for (const auto& action : bound) paths.push_back(&action.path);
  TABELLA_TRY(check_all_disjoint(paths));
  for (const auto& action : bound)
    if (action.kind == UpdateAction::Kind::add || action.kind == UpdateAction::Kind::erase)
      TABELLA_TRY(check_add_or_delete(action));
  for (const auto& action : bound)
    if (action.kind == UpdateAction::Kind::set) TABELLA_TRY(check_set_value(action.value));
  return bound;
}

Checked<Projection> bind(const Projection& tree, Bindings& bindings) {
  Projection bound = tree;
  Resolver resolver{bindings};
  std::vector<const Path*> paths;
  for (auto& path : bound) {
    resolver.resolve(path);
    paths.push_back(&path);
  }
  if (resolver.first_fault) return invalid(std::move(*resolver.first_fault));
  TABELLA_TRY(check_all_disjoint(paths));
  return bound;
}

namespace {

std::unexpected<Invalid> bad_operator(std::string_view op) {
  return invalid(fmt::format("Invalid operator used in KeyConditionExpression: {}", op));
}

KeyPredicate::Operator key_operator(Comparator comparator, bool flipped) {
  using Op = KeyPredicate::Operator;
  switch (comparator) {
    case Comparator::equal: return Op::equal;
    case Comparator::less: return flipped ? Op::greater : Op::less;
    case Comparator::less_equal: return flipped ? Op::greater_equal : Op::less_equal;
    case Comparator::greater: return flipped ? Op::less : Op::greater;
    case Comparator::greater_equal: return flipped ? Op::less_equal : Op::greater_equal;
    case Comparator::not_equal: break;
  }
  return Op::unindexable;
}

Checked<KeyPredicate> leaf_predicate(const Condition& condition) {
  using Op = KeyPredicate::Operator;
  KeyPredicate predicate;
  std::optional<size_t> path_at;
  for (size_t i = 0; i < condition.operands.size(); ++i) {
    const auto& operand = condition.operands[i];
    if (operand.kind == Operand::Kind::function)
      return invalid("KeyConditionExpressions cannot contain nested operations");
    if (operand.kind == Operand::Kind::value) {
      predicate.values.push_back(operand.value);
      continue;
    }
    if (path_at)
      return invalid(
          "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition");
    if (operand.path.size() > 1)
      return invalid("KeyConditionExpressions cannot have conditions on nested attributes");
    path_at = i;
    predicate.attribute = operand.path[0].name;
  }
  if (condition.kind != Condition::Kind::comparison && path_at != 0)
    return invalid(
        fmt::format("Invalid condition in KeyConditionExpression: {} operator must have the key attribute as "
                    "its first operand",
                    condition.kind == Condition::Kind::between ? "BETWEEN" : condition.function));
  if (!path_at) return invalid("Invalid condition in KeyConditionExpression: No key attribute specified");
  if (condition.kind == Condition::Kind::comparison)
    predicate.op = key_operator(condition.comparator, path_at == 1);
  else
    predicate.op = condition.kind == Condition::Kind::between ? Op::between : Op::begins_with;
  return predicate;
}

Checked<> collect_predicates(const Condition& condition, std::vector<KeyPredicate>& out) {
  switch (condition.kind) {
    case Condition::Kind::any_of: return bad_operator("OR");
    case Condition::Kind::negation: return bad_operator("NOT");
    case Condition::Kind::in: return bad_operator("IN");
    case Condition::Kind::all_of:
      for (const auto& child : condition.children) TABELLA_TRY(collect_predicates(child, out));
      return {};
    case Condition::Kind::comparison:
      if (condition.comparator == Comparator::not_equal) return bad_operator("<>");
      break;
    case Condition::Kind::function:
      if (condition.function != "begins_with") return bad_operator(condition.function);
      break;
    case Condition::Kind::between: break;
  }
  TABELLA_ASSIGN(auto predicate, leaf_predicate(condition));
  for (const auto& earlier : out)
    if (earlier.attribute == predicate.attribute)
      return invalid("KeyConditionExpressions must only contain one condition per key");
  out.push_back(std::move(predicate));
  return {};
}

}  // namespace

Checked<std::vector<KeyPredicate>> to_key_predicates(const Condition& bound) {
  std::vector<KeyPredicate> predicates;
  TABELLA_TRY(collect_predicates(bound, predicates));
  return predicates;
}

}  // namespace tabella::expression

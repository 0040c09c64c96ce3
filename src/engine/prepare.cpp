#include "engine/prepare.h"

#include <algorithm>

#include <fmt/format.h>

#include "expression/legacy.h"

namespace tabella::engine {

using store::refuse;
using store::Result;

namespace {

std::string present_names(Parameters parameters) {
  std::string names;
  for (const auto& p : parameters) {
    if (!p.present) continue;
    if (!names.empty()) names.append(", ");
    names.append(p.name);
  }
  return names;
}

bool any_present(Parameters parameters) {
  return std::ranges::any_of(parameters, [](const Parameter& p) { return p.present; });
}

// ProjectionExpression takes names but no values.
bool takes_values(const Parameter& p) { return p.name != "ProjectionExpression"; }

Result<> check_values_wanted(Parameters expressions) {
  std::string names;
  int count = 0;
  for (const auto& p : expressions) {
    if (!takes_values(p)) continue;
    if (p.present) return {};
    if (count++ > 0) names.append(" and ");
    names.append(p.name);
  }
  return refuse(
      fmt::format("ExpressionAttributeValues can only be specified when using expressions: {} {} null", names,
                  count > 1 ? "are" : "is"));
}

bool is_reference(std::string_view text, char sigil) {
  return text.size() > 1 && text[0] == sigil && std::ranges::all_of(text.substr(1), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// A name of ExpressionAttributeNames or -Values.
Result<> check_reference(std::string_view parameter, std::string_view reference, char sigil) {
  constexpr size_t kMaxReference = 255;
  if (reference.size() > kMaxReference)
    return refuse(
        fmt::format("{} contains invalid key: The expression attribute map contains a key that is too long; "
                    "size of key: {}",
                    parameter, reference.size()));
  if (!is_reference(reference, sigil))
    return refuse(fmt::format("{} contains invalid key: Syntax error; key: \"{}\"", parameter, reference));
  return {};
}

// Both maps together, what is in them included.
Result<> check_attributes_size(size_t names, size_t values) {
  constexpr size_t kMost = 2u << 20;
  if (names > kMost) return refuse("ExpressionAttributeNames exceeds max size");
  if (values > kMost) return refuse("ExpressionAttributeValues exceeds max size");
  if (names + values > kMost)
    return refuse("Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size");
  return {};
}

void collect_operand_paths(const expression::Operand& operand, std::vector<expression::Path>& paths) {
  if (operand.kind == expression::Operand::Kind::path) paths.push_back(operand.path);
  for (const auto& argument : operand.arguments) collect_operand_paths(argument, paths);
}

}  // namespace

std::unexpected<store::Error> no_such_table() {
  return store::fail(store::ErrorCode::resource_not_found, "Requested resource not found");
}

Result<SchemaPtr> find_table(const Catalogue& catalogue, std::string_view name) {
  if (auto table = catalogue.find(name)) return table;
  return no_such_table();
}

Result<> check_parameters(Parameters expressions, Parameters legacy,
                          const store::ExpressionAttributes& attributes) {
  const bool any_expression = any_present(expressions);
  if (any_expression && any_present(legacy))
    return refuse(
        fmt::format("Can not use both expression and non-expression parameters in the same request: "
                    "Non-expression parameters: {{{}}} Expression parameters: {{{}}}",
                    present_names(legacy), present_names(expressions)));
  if (attributes.names && !any_expression)
    return refuse("ExpressionAttributeNames can only be specified when using expressions");
  if (attributes.values) return check_values_wanted(expressions);
  return {};
}

Result<> check_attributes(const store::ExpressionAttributes& attributes) {
  constexpr size_t kMaxName = 65535;
  size_t names_size = 0;
  if (attributes.names) {
    if (attributes.names->empty()) return refuse("ExpressionAttributeNames must not be empty");
    for (const auto& [reference, name] : *attributes.names) {
      TABELLA_TRY(check_reference("ExpressionAttributeNames", reference, '#'));
      names_size += reference.size() + name.size();
      if (name.empty())
        return refuse(fmt::format(
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key {}", reference));
      if (name.size() > kMaxName)
        return refuse(
            fmt::format("ExpressionAttributeNames contains invalid value: Attribute name is too large, must "
                        "be less than {} bytes "
                        "for key {}",
                        kMaxName + 1, reference));
    }
  }
  if (attributes.values) {
    if (attributes.values->count() == 0) return refuse("ExpressionAttributeValues must not be empty");
    for (item::Attributes a(*attributes.values); a.next();)
      TABELLA_TRY(check_reference("ExpressionAttributeValues", a.name(), ':'));
  }
  return check_attributes_size(names_size, attributes.values ? attributes.values->size() : 0);
}

template <class Tree>
Result<std::optional<Tree>> prepare(expression::ParseCache<Tree>& cache,
                                    const std::optional<std::string>& text, expression::Bindings& bindings,
                                    std::string_view parameter) {
  if (!text) return std::nullopt;
  const auto explain = [&](const Invalid& error) {
    return refuse(fmt::format("Invalid {}: {}", parameter, error.message));
  };
  const auto parsed = cache.get(*text);
  if (!*parsed) return explain(parsed->error());
  auto bound = expression::bind(**parsed, bindings);
  if (!bound) return explain(bound.error());
  return std::optional<Tree>(std::move(*bound));
}

template Result<std::optional<expression::Condition>> prepare(expression::ParseCache<expression::Condition>&,
                                                              const std::optional<std::string>&,
                                                              expression::Bindings&, std::string_view);
template Result<std::optional<expression::Update>> prepare(expression::ParseCache<expression::Update>&,
                                                           const std::optional<std::string>&,
                                                           expression::Bindings&, std::string_view);
template Result<std::optional<expression::Projection>> prepare(
    expression::ParseCache<expression::Projection>&, const std::optional<std::string>&, expression::Bindings&,
    std::string_view);

Result<std::optional<expression::Condition>> prepare_expected(const store::WriteOptions& options) {
  if (options.conditional_operator && (!options.expected || options.expected->empty()))
    return refuse(
        "One or more parameter values were invalid: ConditionalOperator cannot be used without Filter or "
        "Expected");
  if (!options.expected || options.expected->empty()) return std::nullopt;
  auto condition = expression::from_expected(*options.expected,
                                             options.conditional_operator.value_or(store::Combine::all));
  if (!condition) return std::unexpected(std::move(condition).error());
  return std::optional(std::move(*condition));
}

Result<> check_return_values(store::ReturnValues values) {
  if (values == store::ReturnValues::none || values == store::ReturnValues::all_old) return {};
  return refuse("ReturnValues can only be ALL_OLD or NONE");
}

Result<> check_item_size(const item::Item& item) {
  if (item.size() <= kMaxItemSize) return {};
  return refuse("Item size has exceeded the maximum allowed size");
}

Result<> check_key_paths(const TableSchema& table, const std::vector<expression::Path>& paths) {
  const auto nested_in = [&](std::string_view attribute) {
    return std::ranges::any_of(
        paths, [&](const expression::Path& p) { return p.size() > 1 && p[0].name == attribute; });
  };
  const auto complain = [](std::string_view what, std::string_view attribute) {
    return refuse(fmt::format(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {}: {}",
        what, attribute));
  };
  if (nested_in(table.partition.name)) return complain("Key", table.partition.name);
  if (table.sort && nested_in(table.sort->name)) return complain("Key", table.sort->name);
  for (const auto& index : table.indexes)
    for (const auto* part : {&index.partition, &index.sort})
      for (const auto& key : *part)
        if (nested_in(key.name)) return complain("IndexKey", key.name);
  return {};
}

void collect_paths(const expression::Condition& condition, std::vector<expression::Path>& paths) {
  for (const auto& operand : condition.operands) collect_operand_paths(operand, paths);
  for (const auto& child : condition.children) collect_paths(child, paths);
}

}  // namespace tabella::engine

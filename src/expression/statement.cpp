#include "expression/statement.h"

#include <fmt/format.h>

#include "expression/evaluate.h"

namespace tabella::expression {

using item::Type;

void append_constant(std::string& out, const Constant& constant, std::span<const std::string> parameters) {
  if (constant.kind == Constant::Kind::literal) {
    out.append(constant.flat);
    return;
  }
  if (constant.kind == Constant::Kind::parameter) {
    out.append(parameters[constant.parameter]);
    return;
  }
  const bool map = constant.kind == Constant::Kind::map;
  item::ContainerEncoder container(out, map ? Type::M : Type::L);
  for (size_t i = 0; i < constant.elements.size(); ++i) {
    if (map)
      container.start_member(constant.names[i]);
    else
      container.start_element();
    append_constant(out, constant.elements[i], parameters);
  }
  container.finish();
}

namespace {

// A view of the constant's value, from where it stands or out of `storage`.
item::ValueView constant_value(const Constant& constant, std::span<const std::string> parameters,
                               std::deque<std::string>& storage) {
  if (constant.kind == Constant::Kind::literal) return item::ValueView(constant.flat);
  if (constant.kind == Constant::Kind::parameter) return item::ValueView(parameters[constant.parameter]);
  append_constant(storage.emplace_back(), constant, parameters);
  return item::ValueView(storage.back());
}

}  // namespace

Checked<BoundStatement> bind(const Statement& parsed, std::span<const std::string> parameters) {
  if (parameters.size() < parsed.parameters)
    return invalid("Number of parameters in request and statement don't match.");
  BoundStatement bound{.statement = parsed};
  std::vector<std::string> references;
  std::vector<std::pair<std::string_view, item::ValueView>> values;
  for (size_t i = 0; i < parsed.constants.size(); ++i) references.push_back(fmt::format(":{}", i));
  for (size_t i = 0; i < parsed.constants.size(); ++i)
    values.emplace_back(references[i], constant_value(parsed.constants[i], parameters, *bound.storage));
  auto& statement = bound.statement;
  statement.constants.clear();
  if (statement.kind == Statement::Kind::insert) bound.item = values[statement.item].second;
  Bindings bindings(std::move(values));
  if (statement.where) {
    TABELLA_ASSIGN(statement.where, bind(*parsed.where, bindings));
  }
  TABELLA_ASSIGN(statement.update, bind(parsed.update, bindings));
  for (const auto& action : statement.update) {
    const bool add = action.kind == UpdateAction::Kind::add;
    if ((add || action.kind == UpdateAction::Kind::erase) && !item::is_set(action.value.value.type()))
      return invalid(fmt::format("The second argument to {} must be a value with type SET",
                                 add ? "SET_ADD" : "SET_DELETE"));
  }
  return bound;
}

item::Item select(item::ItemView item, const std::vector<Column>& columns) {
  item::ItemBuilder builder;
  item::Lookup lookup(item);
  for (const auto& column : columns)
    if (const auto value = find(lookup, column.path)) builder.add(column.name, *value);
  return builder.finish();
}

}  // namespace tabella::expression

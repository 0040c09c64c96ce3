#include "engine/statement.h"

#include <algorithm>

#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/update_item.h"

namespace tabella::engine {

using expression::Comparator;
using expression::Condition;
using expression::Operand;
using expression::Statement;
using store::refuse;
using store::Result;

namespace {

// The value that a conjunct of `where` says the attribute equals.
std::optional<item::ValueView> equal_to(const Condition& where, std::string_view attribute) {
  if (where.kind == Condition::Kind::all_of) {
    for (const auto& child : where.children)
      if (auto value = equal_to(child, attribute)) return value;
    return std::nullopt;
  }
  if (where.kind != Condition::Kind::comparison || where.comparator != Comparator::equal) return std::nullopt;
  for (const auto& [path, value] :
       {std::pair(&where.operands[0], &where.operands[1]), std::pair(&where.operands[1], &where.operands[0])})
    if (path->kind == Operand::Kind::path && value->kind == Operand::Kind::value && path->path.size() == 1 &&
        path->path[0].name == attribute)
      return value->value;
  return std::nullopt;
}

size_t count_conjuncts(const Condition& where) {
  if (where.kind != Condition::Kind::all_of) return 1;
  size_t count = 0;
  for (const auto& child : where.children) count += count_conjuncts(child);
  return count;
}

Result<> check_nesting(item::ItemView item) {
  for (item::Attributes a(item); a.next();)
    if (item::nesting(a.value()) > item::kMaxNesting) return refuse(item::kTooDeep);
  return {};
}

Result<WriteAction> to_insert(PreparedStatement& statement, const Catalogue& catalogue) {
  WriteAction action{.kind = WriteAction::Kind::put, .insert = true};
  item::ItemBuilder builder;
  for (item::Elements e(statement.bound.item); e.next();) {
    if (e.name().empty()) return store::wrong("Empty attribute name");
    builder.add(e.name(), e.value());
  }
  action.item = builder.finish();
  TABELLA_TRY(check_item_size(action.item));
  TABELLA_TRY(check_nesting(action.item));
  TABELLA_ASSIGN(action.table, find_table(catalogue, statement.tree().table));
  TABELLA_TRY(check_item(*action.table, action.item));
  action.key = item_key(*action.table, action.item);
  return action;
}

WriteAction::Kind write_kind_of(Statement::Kind kind) {
  switch (kind) {
    case Statement::Kind::insert: return WriteAction::Kind::put;
    case Statement::Kind::update: return WriteAction::Kind::update;
    case Statement::Kind::remove: return WriteAction::Kind::remove;
    case Statement::Kind::exists:
    case Statement::Kind::select: break;
  }
  return WriteAction::Kind::check;
}

}  // namespace

Result<PreparedStatement> prepare_statement(const store::Statement& request, expression::Caches& caches) {
  if (request.fault) return refuse(*request.fault);
  PreparedStatement statement{.parsed = caches.statements.get(request.text)};
  if (!*statement.parsed) return std::unexpected(store::Error(statement.parsed->error()));
  static const std::vector<std::string> kNone;
  TABELLA_ASSIGN(statement.bound,
                 expression::bind(**statement.parsed, request.parameters ? *request.parameters : kNone));
  return statement;
}

std::optional<item::Item> key_in_where(const TableSchema& table, const Statement& statement, bool alone) {
  if (!statement.where) return std::nullopt;
  if (alone && count_conjuncts(*statement.where) > (table.sort ? 2u : 1u)) return std::nullopt;
  item::ItemBuilder key;
  const auto add = [&](const KeyAttribute& attribute) {
    const auto value = equal_to(*statement.where, attribute.name);
    if (value) key.add(attribute.name, *value);
    return value.has_value();
  };
  if (!add(table.partition) || (table.sort && !add(*table.sort))) return std::nullopt;
  return key.finish();
}

Result<WriteAction> to_action(PreparedStatement& statement, const store::Statement& request,
                              const Catalogue& catalogue) {
  const auto& tree = statement.tree();
  if (tree.kind == Statement::Kind::insert) return to_insert(statement, catalogue);
  WriteAction action{.kind = write_kind_of(tree.kind),
                     .return_old_on_failure = request.return_old_on_failure,
                     .missing_is_fine = tree.kind == Statement::Kind::remove};
  TABELLA_ASSIGN(action.table, find_table(catalogue, tree.table));
  auto key = key_in_where(*action.table, tree);
  if (!key) return refuse("Where clause does not contain a mandatory equality on all key attributes");
  TABELLA_TRY(check_key(*action.table, *key));
  if (tree.kind == Statement::Kind::update) {
    TABELLA_TRY(check_update(*action.table, tree.update));
    action.update = tree.update;
  }
  action.condition = tree.where;
  action.key = item_key(*action.table, *key);
  action.item = std::move(*key);
  return action;
}

store::ReturnValues returning(const Statement& statement) {
  using store::ReturnValues;
  if (!statement.returning) return ReturnValues::none;
  const auto [all, fresh] = *statement.returning;
  if (all) return fresh ? ReturnValues::all_new : ReturnValues::all_old;
  return fresh ? ReturnValues::updated_new : ReturnValues::updated_old;
}

item::Item shown(const Statement& statement, item::Item item) {
  return statement.columns.empty() ? std::move(item) : expression::select(item, statement.columns);
}

}  // namespace tabella::engine

#include "engine/update_item.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "expression/apply.h"
#include "expression/legacy.h"

namespace tabella::engine {

using expression::Update;
using expression::UpdateAction;
using store::refuse;
using store::Result;
using store::UpdateItemRequest;

namespace {

Result<> check_key_untouched(const TableSchema& table, const Update& update) {
  const auto touches = [&](std::string_view attribute) {
    return std::ranges::any_of(update, [&](const UpdateAction& a) { return a.path[0].name == attribute; });
  };
  const auto complain = [](std::string_view attribute) {
    return refuse(
        fmt::format("One or more parameter values were invalid: Cannot update attribute {}. This attribute "
                    "is part of the key",
                    attribute));
  };
  if (touches(table.partition.name)) return complain(table.partition.name);
  if (table.sort && touches(table.sort->name)) return complain(table.sort->name);
  return {};
}

// A literal of the wrong type for an index is refused before the condition is looked at.
Result<> check_index_literals(const TableSchema& table, const Update& update) {
  const auto literal_for = [&](const std::string& attribute) -> const UpdateAction* {
    const auto at = std::ranges::find_if(update, [&](const UpdateAction& a) {
      return a.path.size() == 1 && a.path[0].name == attribute && a.kind != UpdateAction::Kind::remove &&
             a.value.kind == expression::Operand::Kind::value;
    });
    return at == update.end() ? nullptr : &*at;
  };
  std::map<std::string, std::string> faults;  // by index: AWS names the first by the alphabet
  for (const auto& index : table.indexes)
    for (const auto* part : {&index.partition, &index.sort})
      for (const auto& key : *part) {
        const auto* action = literal_for(key.name);
        if (action && action->value.value.type() != key.type)
          faults.emplace(index.name(),
                         fmt::format("Type mismatch for Index Key {} Expected: {} Actual: {} IndexName: {}",
                                     key.name, item::type_name(key.type),
                                     item::type_name(action->value.value.type()), index.name()));
      }
  if (!faults.empty()) return store::wrong(faults.begin()->second);
  return {};
}

Result<> check_update_paths(const TableSchema& table, const Update& update) {
  std::vector<expression::Path> paths;
  for (const auto& action : update) paths.push_back(action.path);
  return check_key_paths(table, paths);
}

Result<> check_changed_index_keys(const TableSchema& table, const item::Item* old, const item::Item& now) {
  for (const auto& index : table.indexes) {
    for (const auto* part : {&index.partition, &index.sort}) {
      for (const auto& key : *part) {
        const auto value = now.find(key.name);
        const auto before = old ? old->find(key.name) : std::nullopt;
        if (!value || (before && before->bytes() == value->bytes())) continue;
        if (value->type() != key.type)
          return refuse(
              "The update expression attempted to update the secondary index key to unsupported type");
        if (key.type != item::Type::N && value->content().empty())
          return refuse(
              fmt::format("One or more parameter values are not valid. The update expression attempted to "
                          "update a secondary index "
                          "key to a value that is not supported. The AttributeValue for a key attribute "
                          "cannot contain an empty {} "
                          "value.",
                          key.type == item::Type::B ? "binary" : "string"));
      }
    }
  }
  return check_index_keys(table, now);
}

bool only_removes(const Update& update) {
  return !update.empty() && std::ranges::all_of(update, [](const UpdateAction& a) {
    return a.kind == UpdateAction::Kind::remove || a.kind == UpdateAction::Kind::erase;
  });
}

Result<WriteAction> prepare_update(UpdateItemRequest& request, expression::Caches& caches,
                                   const Catalogue& catalogue) {
  const auto& options = request.options;
  TABELLA_TRY(check_parameters(
      {{"UpdateExpression", request.update.has_value()},
       {"ConditionExpression", options.condition.has_value()}},
      {{"AttributeUpdates", request.updates.has_value()}, {"Expected", options.expected.has_value()}},
      options.attributes));
  std::optional<Update> legacy_update;
  if (request.updates) {
    TABELLA_ASSIGN(legacy_update, expression::from_updates(*request.updates));
  }
  WriteAction action{.kind = WriteAction::Kind::update};
  TABELLA_TRY(prepare_options(action, options, request.update, caches));
  if (legacy_update) action.update = std::move(legacy_update);
  TABELLA_ASSIGN(action.table, find_table(catalogue, request.table));
  TABELLA_TRY(check_key(*action.table, request.key));
  if (action.update) TABELLA_TRY(check_update(*action.table, *action.update));
  action.key = item_key(*action.table, request.key);
  action.item = std::move(request.key);
  return action;
}

}  // namespace

Result<> check_update(const TableSchema& table, const Update& update) {
  TABELLA_TRY(check_key_untouched(table, update));
  TABELLA_TRY(check_index_literals(table, update));
  return check_update_paths(table, update);
}

Result<std::optional<item::Item>> updated(const TableSchema& table, const WriteAction& action,
                                          const item::Item* old) {
  static const Update kNothing;
  const Update& update = action.update ? *action.update : kNothing;
  // Taking away from an item that is not there does not bring it into being.
  if (!old && only_removes(update)) return std::nullopt;
  const auto base = old ? old->view() : action.item.view();
  TABELLA_ASSIGN(auto now, expression::apply(update, base, old != nullptr));
  TABELLA_TRY(check_changed_index_keys(table, old, now));
  if (now.size() > kMaxItemSize) return refuse("Item size to update has exceeded the maximum allowed size");
  return std::optional(std::move(now));
}

store::Async<store::WriteResult> Engine::update_item(UpdateItemRequest request) {
  TABELLA_CO_ASSIGN(auto action, prepare_update(request, caches_, catalogue_));
  co_return co_await write(action, request.options);
}

}  // namespace tabella::engine

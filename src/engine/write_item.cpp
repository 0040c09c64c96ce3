#include "engine/write_item.h"

#include "engine/capacity.h"
#include "engine/prepare.h"
#include "engine/update_item.h"
#include "expression/apply.h"
#include "expression/evaluate.h"

namespace tabella::engine {

using store::ErrorCode;
using store::Result;
using store::WriteResult;

namespace {

Result<> check_condition(const WriteAction& action, const item::Item* old) {
  if (action.insert && old)
    return store::fail(ErrorCode::duplicate_item, "Duplicate primary key exists in table");
  if (!action.condition || (action.missing_is_fine && !old)) return {};
  const auto view = old ? old->view() : item::ItemView();
  if (expression::evaluate(*action.condition, old ? &view : nullptr)) return {};
  store::Error error(ErrorCode::conditional_check_failed, "The conditional request failed");
  if (action.return_old_on_failure && old) error.item = *old;
  return std::unexpected(std::move(error));
}

Result<std::optional<item::Item>> next_item(const TableSchema& table, WriteAction& action,
                                            const item::Item* old) {
  switch (action.kind) {
    case WriteAction::Kind::put: return std::move(action.item);
    case WriteAction::Kind::update:
      return action.precomputed ? std::move(action.precomputed->updated) : updated(table, action, old);
    case WriteAction::Kind::remove: return std::nullopt;
    case WriteAction::Kind::check: break;
  }
  return old ? std::optional(*old) : std::nullopt;
}

size_t cost_of(const WriteAction& action, size_t item_size) {
  constexpr size_t kPassesOfUpdate = 8;  // to find, decode, rebuild and check
  size_t cost = action.update ? kPassesOfUpdate * item_size : 0;
  if (action.condition) cost += expression::cost_of(*action.condition, item_size);
  return cost;
}

}  // namespace

bool can_run_in_writer(const WriteContext& context, WriteAction& action, size_t most) {
  if (!action.condition && !action.update) return true;
  if (cost_of(action, context.size_of(action.key)) <= most) {
    action.precomputed.reset();
    return true;
  }
  auto table = context.table(action.table->name());
  auto stored = context.get(action.key);
  auto& precomputed = action.precomputed;
  if (precomputed && precomputed->ready && precomputed->table == table && precomputed->seen == stored)
    return true;
  precomputed = Precomputed{.table = std::move(table), .seen = std::move(stored)};
  return false;
}

void precompute(WriteAction& action) {
  if (!action.precomputed) return;
  auto precomputed = std::exchange(action.precomputed, std::nullopt);
  std::optional<item::Item> item;
  if (precomputed->seen) item = item::Item(*precomputed->seen);
  const auto* old = item ? &*item : nullptr;
  precomputed->condition = check_condition(action, old);
  if (precomputed->condition && action.kind == WriteAction::Kind::update && precomputed->table)
    precomputed->updated = updated(*precomputed->table, action, old);
  precomputed->ready = true;
  action.precomputed = std::move(precomputed);
}

Result<> prepare_expressions(WriteAction& action, const std::optional<std::string>& update,
                             const std::optional<std::string>& condition,
                             const store::ExpressionAttributes& attributes, expression::Caches& caches) {
  TABELLA_TRY(check_attributes(attributes));
  if (!update && !condition) return {};
  expression::Bindings bindings(attributes.names_or_none(), attributes.values_or_none());
  TABELLA_ASSIGN(action.update, prepare(caches.updates, update, bindings, "UpdateExpression"));
  TABELLA_ASSIGN(action.condition, prepare(caches.conditions, condition, bindings, "ConditionExpression"));
  TABELLA_TRY(bindings.check_all_used());
  return {};
}

Result<> prepare_options(WriteAction& action, const store::WriteOptions& options,
                         const std::optional<std::string>& update, expression::Caches& caches) {
  action.return_old_on_failure = options.return_old_on_failure;
  TABELLA_ASSIGN(action.condition, prepare_expected(options));
  return prepare_expressions(action, update, options.condition, options.attributes, caches);
}

std::optional<item::Item> returned(const WriteAction& action, store::ReturnValues values,
                                   ItemChange& change) {
  using store::ReturnValues;
  const auto touched = [&](const std::optional<item::Item>& item) -> std::optional<item::Item> {
    if (!item || !action.update) return std::nullopt;
    auto part = expression::project(*item, expression::touched_paths(*action.update));
    return part.count() == 0 ? std::nullopt : std::optional(std::move(part));
  };
  switch (values) {
    case ReturnValues::none: return std::nullopt;
    case ReturnValues::all_old: return std::move(change.old);
    case ReturnValues::all_new: return std::move(change.now);
    case ReturnValues::updated_old: return touched(change.old);
    case ReturnValues::updated_new: return touched(change.now);
  }
  return std::nullopt;
}

Result<SchemaPtr> current_table(const WriteContext& context, const TableSchema& prepared_for) {
  auto table = context.table(prepared_for.name());
  if (table && table->id == prepared_for.id) return table;
  return no_such_table();
}

Result<ItemChange> evaluate(const WriteContext& context, const TableSchema& table, WriteAction& action) {
  ItemChange change{.key = action.key};
  if (auto stored = context.get(action.key)) change.old = item::Item(std::move(*stored));
  const item::Item* old = change.old ? &*change.old : nullptr;
  TABELLA_TRY(action.precomputed ? std::move(action.precomputed->condition) : check_condition(action, old));
  TABELLA_ASSIGN(change.now, next_item(table, action, old));
  return change;
}

Result<WriteResult> write_item(WriteContext& context, WriteAction& action,
                               const store::WriteOptions& options) {
  TABELLA_ASSIGN(const auto table, current_table(context, *action.table));
  TABELLA_ASSIGN(auto change, evaluate(context, *table, action));
  WriteResult result;
  result.capacity = account(table->name(), options.capacity);
  write_change(context, *table, change, result.capacity ? &*result.capacity : nullptr);
  if (options.collection_metrics && (change.now || change.old))
    result.collection_metrics =
        collection_metrics(context.database(), *table, change.now ? change.now->view() : change.old->view());
  result.attributes = returned(action, options.return_values, change);
  return result;
}

}  // namespace tabella::engine

#include "engine/write_item.h"

#include "engine/capacity.h"
#include "engine/prepare.h"
#include "expression/apply.h"
#include "expression/evaluate.h"

namespace tabella::engine {

using store::ErrorCode;
using store::Result;
using store::WriteResult;

namespace {

Result<> check_condition(const PreparedWrite& write, const store::WriteOptions& options,
                         const item::Item* old) {
  if (!write.condition) return {};
  const auto view = old ? old->view() : item::ItemView();
  if (expression::evaluate(*write.condition, old ? &view : nullptr)) return {};
  store::Error error(ErrorCode::conditional_check_failed, "The conditional request failed");
  if (options.return_old_on_failure && old) error.item = *old;
  return std::unexpected(std::move(error));
}

std::optional<item::Item> returned(const PreparedWrite& write, store::ReturnValues values,
                                   ItemChange& change) {
  using store::ReturnValues;
  const auto touched = [&](const std::optional<item::Item>& item) -> std::optional<item::Item> {
    if (!item || !write.update) return std::nullopt;
    auto part = expression::project(*item, expression::touched_paths(*write.update));
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

}  // namespace

Result<PreparedWrite> prepare_expressions(const store::WriteOptions& options,
                                          const std::optional<std::string>& update,
                                          expression::Caches& caches) {
  PreparedWrite write;
  TABELLA_ASSIGN(write.condition, prepare_expected(options));
  TABELLA_TRY(check_attributes(options.attributes));
  if (!update && !options.condition) return write;
  expression::Bindings bindings(options.attributes.names_or_none(), options.attributes.values_or_none());
  TABELLA_ASSIGN(write.update, prepare(caches.updates, update, bindings, "UpdateExpression"));
  TABELLA_ASSIGN(write.condition,
                 prepare(caches.conditions, options.condition, bindings, "ConditionExpression"));
  TABELLA_TRY(bindings.check_all_used());
  return write;
}

Result<SchemaPtr> current_table(const WriteContext& context, const TableSchema& prepared_for) {
  auto table = context.table(prepared_for.name());
  if (table && table->id == prepared_for.id) return table;
  return no_such_table();
}

Result<WriteResult> write_item(WriteContext& context, const PreparedWrite& write,
                               const store::WriteOptions& options, const NextItem& next) {
  TABELLA_ASSIGN(const auto table, current_table(context, *write.table));
  ItemChange change{.key = write.key, .old = {}, .now = {}};
  if (auto stored = context.get(write.key)) change.old = item::Item(std::move(*stored));
  const item::Item* old = change.old ? &*change.old : nullptr;
  TABELLA_TRY(check_condition(write, options, old));
  TABELLA_ASSIGN(change.now, next(*table, old));

  WriteResult result;
  result.capacity = account(table->name(), options.capacity);
  write_change(context, *table, change, result.capacity ? &*result.capacity : nullptr);
  if (options.collection_metrics && (change.now || change.old))
    result.collection_metrics =
        collection_metrics(context.database(), *table, change.now ? change.now->view() : change.old->view());
  result.attributes = returned(write, options.return_values, change);
  return result;
}

}  // namespace tabella::engine

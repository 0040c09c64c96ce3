// What PutItem, UpdateItem and DeleteItem share: a condition on the item as it is, a change, an answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/change.h"
#include "engine/schema.h"
#include "engine/writer.h"
#include "expression/cache.h"
#include "expression/tree.h"
#include "store/requests.h"

namespace tabella::engine {

// A write that has passed every check that needs no look at the item.
struct PreparedWrite {
  SchemaPtr table;
  std::string key;
  std::optional<expression::Condition> condition;
  std::optional<expression::Update> update;
};

// The expressions of a write, or the legacy parameters in their place, as trees.
store::Result<PreparedWrite> prepare_expressions(const store::WriteOptions& options,
                                                 const std::optional<std::string>& update,
                                                 expression::Caches& caches);

// The item after the write, made from the one before; nothing to delete it.
using NextItem =
    std::function<store::Result<std::optional<item::Item>>(const TableSchema&, const item::Item* old)>;

// Runs on the writer's thread.
store::Result<store::WriteResult> write_item(WriteContext& context, const PreparedWrite& write,
                                             const store::WriteOptions& options, const NextItem& next);

// The table as the writer sees it now, if it is still the one the request was prepared for.
store::Result<SchemaPtr> current_table(const WriteContext& context, const TableSchema& prepared_for);

}  // namespace tabella::engine

#include <algorithm>
#include <unordered_set>

#include "engine/capacity.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/write_item.h"

namespace tabella::engine {

using store::BatchWrite;
using store::BatchWriteItemRequest;
using store::BatchWriteItemResult;
using store::refuse;
using store::Result;

namespace {

constexpr size_t kMaxWrites = 25;

struct TableWrites {
  SchemaPtr table;
  std::vector<std::pair<std::string, BatchWrite*>> writes;  // by item key
};

Result<> check_write(const TableSchema& table, const BatchWrite& write) {
  if (!write.put) return check_key(table, write.item);
  // In a batch AWS words a missing or mistyped key of an item as it does that of a Key.
  const auto fits = [&](const KeyAttribute& key) {
    const auto value = write.item.find(key.name);
    return value && value->type() == key.type;
  };
  if (!fits(table.partition) || (table.sort && !fits(*table.sort)))
    return refuse("The provided key element does not match the schema");
  return check_item(table, write.item);
}

Result<std::vector<TableWrites>> prepare_writes(BatchWriteItemRequest& request, const Catalogue& catalogue) {
  size_t count = 0;
  for (const auto& [name, writes] : request.tables) {
    count += writes.size();
    for (const auto& write : writes)
      if (write.put) TABELLA_TRY(check_item_size(write.item));
  }
  if (count > kMaxWrites) return refuse("Too many items requested for the BatchWriteItem call");
  std::vector<TableWrites> prepared;
  for (auto& [name, writes] : request.tables) {
    TableWrites table;
    TABELLA_ASSIGN(table.table, find_table(catalogue, name));
    std::unordered_set<std::string> seen;
    for (auto& write : writes) {
      TABELLA_TRY(check_write(*table.table, write));
      auto key = item_key(*table.table, write.item);
      if (!seen.insert(key).second) return refuse("Provided list of item keys contains duplicates");
      table.writes.emplace_back(std::move(key), &write);
    }
    prepared.push_back(std::move(table));
  }
  return prepared;
}

void write_table(WriteContext& context, const TableSchema& schema, const TableWrites& table,
                 const BatchWriteItemRequest& request, BatchWriteItemResult& result) {
  auto capacity = account(schema.name(), request.capacity);
  std::vector<store::ItemCollectionMetrics> metrics;
  for (const auto& [key, write] : table.writes) {
    ItemChange change{.key = key, .old = {}, .now = {}};
    if (auto stored = context.get(key)) change.old = item::Item(std::move(*stored));
    if (request.collection_metrics)
      add_metrics(metrics, collection_metrics(context.database(), schema, write->item));
    if (write->put) change.now = std::move(write->item);
    write_change(context, schema, change, capacity ? &*capacity : nullptr);
  }
  if (capacity) result.capacity.push_back(std::move(*capacity));
  if (!metrics.empty()) result.collection_metrics.emplace_back(schema.name(), std::move(metrics));
}

}  // namespace

store::Async<BatchWriteItemResult> Engine::batch_write_item(BatchWriteItemRequest request) {
  const auto tables = prepare_writes(request, catalogue_);
  if (!tables) co_return std::unexpected(tables.error());
  Result<BatchWriteItemResult> result;
  co_await writer_.execute([&](WriteContext& context) {
    // All tables are looked at before any is written: a batch that names a dropped one changes nothing.
    std::vector<SchemaPtr> schemas;
    for (const auto& table : *tables) {
      auto schema = current_table(context, *table.table);
      if (!schema) {
        result = std::unexpected(std::move(schema).error());
        return;
      }
      schemas.push_back(std::move(*schema));
    }
    for (size_t i = 0; i < tables->size(); ++i)
      write_table(context, *schemas[i], (*tables)[i], request, *result);
  });
  co_return result;
}

}  // namespace tabella::engine

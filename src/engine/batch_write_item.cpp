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

struct Write {
  size_t table;  // its place among the tables
  std::string key;
  BatchWrite* write;
};

struct Writes {
  std::vector<SchemaPtr> tables;
  std::vector<Write> all;
};

Result<> check_write(const TableSchema& table, const BatchWrite& write) {
  if (!write.put) return check_key(table, write.item);
  // In a batch AWS words a missing or mistyped key of an item as it does that of a Key.
  const auto fits = [&](const KeyAttribute& key) {
    const auto value = write.item.find(key.name);
    return value && value->type() == key.type;
  };
  if (!fits(table.partition) || (table.sort && !fits(*table.sort))) return refuse(kKeyMismatch);
  return check_item(table, write.item);
}

Result<Writes> prepare_writes(BatchWriteItemRequest& request, const Catalogue& catalogue) {
  size_t count = 0;
  for (const auto& [name, writes] : request.tables) {
    count += writes.size();
    for (const auto& write : writes)
      if (write.put) TABELLA_TRY(check_item_size(write.item));
  }
  if (count > kMaxWrites) return refuse("Too many items requested for the BatchWriteItem call");
  Writes prepared;
  for (auto& [name, writes] : request.tables) {
    TABELLA_ASSIGN(auto table, find_table(catalogue, name));
    std::unordered_set<std::string, KeyedHash> seen;
    for (auto& write : writes) {
      TABELLA_TRY(check_write(*table, write));
      auto key = item_key(*table, write.item);
      if (!seen.insert(key).second) return refuse("Provided list of item keys contains duplicates");
      prepared.all.push_back({prepared.tables.size(), std::move(key), &write});
    }
    prepared.tables.push_back(std::move(table));
  }
  return prepared;
}

// What the answer says of each table.
struct TableOutcome {
  std::optional<store::ConsumedCapacity> capacity;
  std::vector<store::ItemCollectionMetrics> metrics;
};

void write_one(WriteContext& context, const TableSchema& schema, const Write& write,
               bool collection_metrics_too, TableOutcome& outcome) {
  ItemChange change{.key = write.key, .old = {}, .now = {}};
  if (auto stored = context.get(write.key)) change.old = item::Item(std::move(*stored));
  if (collection_metrics_too)
    add_metrics(outcome.metrics, collection_metrics(context.database(), schema, write.write->item));
  if (write.write->put) change.now = std::move(write.write->item);
  write_change(context, schema, change, outcome.capacity ? &*outcome.capacity : nullptr);
}

// The tables as the writer sees them: a batch that names a dropped one changes nothing more.
Result<std::vector<SchemaPtr>> current_tables(const WriteContext& context, const Writes& writes) {
  std::vector<SchemaPtr> schemas;
  for (const auto& table : writes.tables) {
    TABELLA_ASSIGN(auto schema, current_table(context, *table));
    schemas.push_back(std::move(schema));
  }
  return schemas;
}

}  // namespace

store::Async<BatchWriteItemResult> Engine::batch_write_item(BatchWriteItemRequest request) {
  TABELLA_CO_ASSIGN(const auto writes, prepare_writes(request, catalogue_));
  std::vector<TableOutcome> outcomes(writes.tables.size());
  for (size_t i = 0; i < outcomes.size(); ++i)
    outcomes[i].capacity = account(writes.tables[i]->name(), request.capacity);
  Result<> written;
  // A batch is not atomic: a large one goes to the writer in pieces, so that others come in between.
  constexpr size_t kPiece = 1u << 20;
  for (size_t next = 0; next < writes.all.size();) {
    auto executed = co_await writer_.execute([&](WriteContext& context) {
      const auto schemas = current_tables(context, writes);
      if (!schemas) {
        written = std::unexpected(schemas.error());
        return;
      }
      const size_t before = context.bytes();
      for (; next < writes.all.size() && context.bytes() - before < kPiece; ++next) {
        const auto& write = writes.all[next];
        write_one(context, *(*schemas)[write.table], write, request.collection_metrics,
                  outcomes[write.table]);
      }
    });
    if (!executed) written = std::move(executed);
    if (!written) break;
  }
  if (!written) co_return std::unexpected(std::move(written).error());
  BatchWriteItemResult result;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].capacity) result.capacity.push_back(std::move(*outcomes[i].capacity));
    if (!outcomes[i].metrics.empty())
      result.collection_metrics.emplace_back(writes.tables[i]->name(), std::move(outcomes[i].metrics));
  }
  co_return result;
}

}  // namespace tabella::engine

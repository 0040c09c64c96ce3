// Fills an index that was added to a table with items in it, a slice at a time, while writes go on. Writes
// keep the index from the moment it exists, so an item that changes after its slice is right already, and one
// that changed before is simply written again with the same entry.
#include <algorithm>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/slices.h"

namespace tabella::engine {
namespace {

struct Backfill {
  std::string table;
  uint32_t table_id;
  uint32_t index_id;
  std::shared_ptr<std::string> filled_to;

  bool step(WriteContext& context);
};

void activate(WriteContext& context, const TableSchema& table, uint32_t index_id) {
  auto done = std::make_shared<TableSchema>(table);
  for (auto& index : done->indexes) {
    if (index.id != index_id) continue;
    index.status = store::Status::active;
    index.filled_to = nullptr;
    log::info("index {} of table {} is filled: {} items", index.name(), table.name(),
              index.counters->items.load());
  }
  context.put_table(std::move(done));
}

bool Backfill::step(WriteContext& context) {
  const auto schema = context.table(table);
  if (!schema || schema->id != table_id) return true;  // dropped meanwhile
  const auto index = std::ranges::find_if(schema->indexes, [&](const auto& i) { return i.id == index_id; });
  if (index == schema->indexes.end()) return true;
  // A backfill that a crash cut short begins again, and counts again.
  if (filled_to->empty()) context.count(*index, -index->counters->items, -index->counters->bytes);
  const bool done = walk_slice(context, table_id, *filled_to, [&](std::string_view, item::ItemView item) {
    const auto entry = index_entry(*schema, *index, item);
    if (!entry) return;
    context.batch().put(entry->key, entry->item.bytes());
    context.count(*index, 1, static_cast<int64_t>(entry->item.size()));
  });
  if (!done) return false;
  activate(context, *schema, index_id);
  return true;
}

}  // namespace

void Engine::start_backfill(const TableSchema& table, const IndexSchema& index) {
  writer_.run_in_background([backfill = Backfill{table.name(), table.id, index.id, index.filled_to}](
                                WriteContext& context) mutable { return backfill.step(context); });
}

}  // namespace tabella::engine

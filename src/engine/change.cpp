#include "engine/change.h"

#include <algorithm>

#include "engine/capacity.h"
#include "engine/expiry.h"
#include "engine/item_keys.h"
#include "engine/keys.h"
#include "engine/stream_record.h"

namespace tabella::engine {
namespace {

int64_t signed_size(const std::optional<item::Item>& item) {
  return item ? static_cast<int64_t>(item->size()) : 0;
}

// AWS charges an index for what changed in it: the larger image where the entry stays in its place, both
// where it moves, nothing where it stays the same.
double index_units(const std::optional<IndexEntry>& old, const std::optional<IndexEntry>& now) {
  const double removed = old ? write_units(old->item.size()) : 0;
  const double added = now ? write_units(now->item.size()) : 0;
  if (old && now && old->key == now->key)
    return old->item.bytes() == now->item.bytes() ? 0 : std::max(removed, added);
  return removed + added;
}

void write_index(WriteContext& context, const TableSchema& table, const IndexSchema& index,
                 const ItemChange& change, store::ConsumedCapacity* capacity) {
  const auto entry = [&](const std::optional<item::Item>& item) {
    return item ? index_entry(table, index, *item) : std::nullopt;
  };
  const auto old = entry(change.old);
  const auto now = entry(change.now);
  if (!old && !now) return;
  if (old && (!now || old->key != now->key)) context.batch().remove(old->key);
  if (now && (!old || old->key != now->key || old->item.bytes() != now->item.bytes()))
    context.batch().put(now->key, now->item.bytes());
  const auto size = [](const std::optional<IndexEntry>& e) {
    return e ? static_cast<int64_t>(e->item.size()) : 0;
  };
  // What the backfill has not come to yet, it will count.
  if (!index.filled_to || change.key < *index.filled_to)
    context.count(index, static_cast<int>(now.has_value()) - static_cast<int>(old.has_value()),
                  size(now) - size(old));
  if (capacity)
    if (const double units = index_units(old, now); units > 0) charge_index(*capacity, index, units);
}

}  // namespace

void write_change(WriteContext& context, const TableSchema& table, const ItemChange& change,
                  store::ConsumedCapacity* capacity) {
  if (change.now)
    context.put(change.key, change.now->bytes());
  else if (change.old)
    context.remove(change.key);
  context.count(table, static_cast<int>(change.now.has_value()) - static_cast<int>(change.old.has_value()),
                signed_size(change.now) - signed_size(change.old));
  if (capacity)
    capacity->table_units +=
        write_units(static_cast<size_t>(std::max(signed_size(change.old), signed_size(change.now))));
  for (const auto& index : table.indexes) write_index(context, table, index, change, capacity);
  write_expiry(context, table, change);
  append_record(context, table, change);
}

void remove_index_entries(WriteContext& context, const IndexSchema& index) {
  const auto prefix = keys::entries_of(index.id);
  context.note_dropped(prefix, static_cast<uint64_t>(index.counters->bytes));
  context.batch().remove_range(prefix, keys::end_of(prefix));
  context.batch().remove(keys::counters(index.id));
  context.forget_count(index.id);
}

void add_metrics(std::vector<store::ItemCollectionMetrics>& all,
                 std::optional<store::ItemCollectionMetrics> one) {
  if (!one) return;
  const bool known =
      std::ranges::any_of(all, [&](const auto& m) { return m.key.bytes() == one->key.bytes(); });
  if (!known) all.push_back(std::move(*one));
}

std::optional<store::ItemCollectionMetrics> collection_metrics(const Database& database,
                                                               const TableSchema& table,
                                                               item::ItemView item) {
  if (!table.has_local_index()) return std::nullopt;
  const auto partition = *item.find(table.partition.name);
  item::ItemBuilder key;
  key.add(table.partition.name, partition);
  const auto size_of = [&](const std::string& prefix) {
    const auto end = keys::end_of(prefix);
    return database.approximate_size(prefix, end);
  };
  uint64_t bytes = size_of(keys::item_partition(table.id, partition));
  for (const auto& index : table.indexes)
    if (index.local) bytes += size_of(keys::index_partition(index.id, {&partition, 1}));
  return store::ItemCollectionMetrics{.key = key.finish(),
                                      .size_gb = static_cast<double>(bytes) / (1u << 30)};
}

}  // namespace tabella::engine

#include "engine/write_context.h"

#include <algorithm>
#include <vector>

#include "engine/keys.h"

namespace tabella::engine {

std::optional<std::string> WriteContext::get(const std::string& key) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->written_.find(key); at != context->written_.end()) return at->second;
  }
  return items_.get(key);
}

void WriteContext::put(const std::string& key, std::string_view value) {
  written_.insert_or_assign(key, std::string(value));
}

void WriteContext::remove(const std::string& key) { written_.insert_or_assign(key, std::nullopt); }

void WriteContext::remove_items(const std::string& prefix) {
  std::erase_if(written_, [&](const auto& item) { return item.first.starts_with(prefix); });
  batch_.remove_range(prefix, keys::end_of(prefix));
}

SchemaPtr WriteContext::table(std::string_view name) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->tables_.find(name); at != context->tables_.end()) return at->second;
  }
  return catalogue_.find(name);
}

void WriteContext::put_table(SchemaPtr table) {
  batch_.put(keys::catalogue_entry(table->name()), encode_schema(*table));
  auto name = table->name();
  tables_.insert_or_assign(std::move(name), std::move(table));
}

void WriteContext::drop_table(const TableSchema& table) {
  deltas_.erase(table.id);
  for (const auto& index : table.indexes) deltas_.erase(index.id);
  batch_.remove(keys::catalogue_entry(table.name()));
  tables_.insert_or_assign(table.name(), nullptr);
}

void WriteContext::fill_batch() {
  std::vector<const ItemCache::Written::value_type*> items;
  items.reserve(written_.size());
  for (const auto& item : written_) items.push_back(&item);
  std::ranges::sort(items, {}, [](const auto* item) -> const std::string& { return item->first; });
  for (const auto* item : items) {
    if (item->second)
      batch_.put(item->first, *item->second);
    else
      batch_.remove(item->first);
  }
  for (const auto& [id, delta] : deltas_) {
    Counters sum;
    sum.items = delta.counters->items + delta.items;
    sum.bytes = delta.counters->bytes + delta.bytes;
    batch_.put(keys::counters(id), encode_counters(sum));
  }
}

void WriteContext::count(uint32_t id, const std::shared_ptr<Counters>& counters, int64_t items,
                         int64_t bytes) {
  if (items == 0 && bytes == 0) return;
  auto& delta = deltas_[id];
  delta.counters = counters;
  delta.items += items;
  delta.bytes += bytes;
}

}  // namespace tabella::engine

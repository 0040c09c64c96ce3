#include "engine/write_context.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "engine/keys.h"

namespace tabella::engine {

std::optional<std::string> WriteContext::get(const std::string& key) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->written_.find(key); at != context->written_.end()) return at->second;
  }
  return stored_.items.get(key);
}

void WriteContext::put(const std::string& key, std::string_view value) {
  written_.insert_or_assign(key, std::string(value));
}

void WriteContext::remove(const std::string& key) { written_.insert_or_assign(key, std::nullopt); }

void WriteContext::remove_items(const std::string& prefix) {
  std::erase_if(written_, [&](const auto& item) { return item.first.starts_with(prefix); });
  batch_.remove_range(prefix, keys::end_of(prefix));
}

SchemaPtr WriteContext::table(std::string_view name_or_arn) const {
  const auto name = store::bare_table_name(name_or_arn);
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->tables_.find(name); at != context->tables_.end()) return at->second;
  }
  return stored_.catalogue.find(name);
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

StreamPtr WriteContext::stream(uint32_t id) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->streams_.find(id); at != context->streams_.end()) return at->second;
  }
  return stored_.streams.find(id);
}

void WriteContext::put_stream(StreamPtr stream) {
  batch_.put(keys::stream_entry(stream->id), encode_stream(*stream));
  const auto id = stream->id;
  streams_.insert_or_assign(id, std::move(stream));
}

void WriteContext::drop_stream(uint32_t id) {
  batch_.remove(keys::stream_entry(id));
  streams_.insert_or_assign(id, nullptr);
}

uint64_t WriteContext::take_sequence() { return sequence_ = stored_.streams.take_sequence(); }

void WriteContext::append_record(uint32_t stream_id, const Shard& shard, std::string_view record) {
  const auto sequence = take_sequence();
  batch_.put(keys::record(stream_id, shard.first, sequence), record);
  ++shard.tail->records;
  tails_[shard.tail] = sequence;
}

void WriteContext::note_expiry(uint32_t expiry_id, const std::string& key) {
  const auto [at, added] = expiries_.emplace(expiry_id, key);
  if (!added && key < at->second) at->second = key;
}

const std::string* WriteContext::uncommitted_expiry(uint32_t expiry_id) const {
  const std::string* first = nullptr;
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    const auto at = context->expiries_.find(expiry_id);
    if (at != context->expiries_.end() && (!first || at->second < *first)) first = &at->second;
  }
  return first;
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
  if (sequence_ > 0) batch_.put(keys::meta("sequence"), encode_number(sequence_));
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

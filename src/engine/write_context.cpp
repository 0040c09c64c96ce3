#include "engine/write_context.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "engine/keys.h"

namespace tabella::engine {

void WriteContext::mark() {
  undo_.clear();
  if (marked_) batch_.forget_mark();
  batch_.mark();
  marked_ = true;
}

void WriteContext::undo() {
  for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
  batch_.undo();
  marked_ = false;
}

std::optional<std::string> WriteContext::get(const std::string& key) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->written_.find(key); at != context->written_.end()) return at->second;
  }
  return stored_.items.get(key);
}

size_t WriteContext::size_of(const std::string& key) const {
  for (const auto* context : {this, before_.get()}) {
    if (!context) continue;
    if (const auto at = context->written_.find(key); at != context->written_.end())
      return at->second ? at->second->size() : 0;
  }
  return stored_.items.size_of(key);
}

void WriteContext::put(const std::string& key, std::string_view value) {
  set(written_, key, std::string(value));
  written_bytes_ += value.size();
}

void WriteContext::remove(const std::string& key) { set(written_, key, std::nullopt); }

void WriteContext::remove_items(const TableSchema& table) {
  const auto prefix = keys::items_of(table.id);
  std::vector<std::string> gone;
  for (const auto& [key, value] : written_)
    if (key.starts_with(prefix)) gone.push_back(key);
  for (const auto& key : gone) unset(written_, key);
  note_dropped(prefix, static_cast<uint64_t>(table.counters->bytes));
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
  const auto name = table->name();
  set(tables_, name, std::move(table));
}

void WriteContext::drop_table(const TableSchema& table) {
  unset(deltas_, table.id);
  for (const auto& index : table.indexes) unset(deltas_, index.id);
  batch_.remove(keys::catalogue_entry(table.name()));
  set(tables_, table.name(), nullptr);
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
  set(streams_, id, std::move(stream));
}

void WriteContext::drop_stream(uint32_t id) {
  batch_.remove(keys::stream_entry(id));
  set(streams_, id, nullptr);
}

uint64_t WriteContext::take_sequence() { return sequence_ = stored_.streams.take_sequence(); }

void WriteContext::append_record(uint32_t stream_id, const Shard& shard, std::string_view record) {
  const auto sequence = take_sequence();
  batch_.put(keys::record(stream_id, shard.first, sequence), record);
  ++shard.tail->records;
  set(tails_, shard.tail, sequence);
}

void WriteContext::note_expiry(uint32_t expiry_id, const std::string& key) {
  const auto at = expiries_.find(expiry_id);
  if (at == expiries_.end() || key < at->second) set(expiries_, expiry_id, key);
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

void WriteContext::forget_count(uint32_t id) { unset(deltas_, id); }

void WriteContext::count(const TableSchema& table, int64_t items, int64_t bytes) {
  count(table.id, table.counters, false, items, bytes);
}

void WriteContext::count(const IndexSchema& index, int64_t items, int64_t bytes) {
  count(index.id, index.counters, true, items, bytes);
}

void WriteContext::count(uint32_t id, const std::shared_ptr<Counters>& counters, bool index, int64_t items,
                         int64_t bytes) {
  if (items == 0 && bytes == 0) return;
  const auto at = deltas_.find(id);
  auto delta = at == deltas_.end() ? Delta() : at->second;
  delta.counters = counters;
  delta.index = index;
  delta.items += items;
  delta.bytes += bytes;
  set(deltas_, id, std::move(delta));
}

}  // namespace tabella::engine

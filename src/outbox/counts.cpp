#include "outbox/counts.h"

#include "outbox/store_backend.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::outbox {

using store::Async;
using store::Row;

namespace {

constexpr const char* kSequence = "sequence";

// Sequence numbers are decimal, and longer ones are later.
bool is_behind(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

void add(std::map<State, int64_t>& counts, const std::optional<item::Item>& image, int64_t what) {
  if (!image) return;
  if (const auto email = to_email(*image)) counts[email->status] += what;
}

}  // namespace

Async<std::map<State, int64_t>> read_counts(store::Store& store, const std::string& table) {
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::query_all(store, store::Query(table).partition("id", kCountsPartition)));
  std::map<State, int64_t> counts;
  for (const auto state : kStates) counts[state] = 0;
  for (const auto& row : rows)
    for (auto& [state, count] : counts) count += store::number_of(row, name_of(state));
  co_return counts;
}

Async<void> put_counts_before(store::Store& store, const std::string& table,
                              const std::map<State, int64_t>& counts) {
  Row row;
  row.set("id", kCountsPartition).set("part", "before");
  for (const auto& [state, count] : counts) row.set(name_of(state), count);
  TABELLA_CO_TRY(store::was_made(co_await store.put_item(store::Put(table, row).when(store::absent("id")))));
  co_return store::Result<>{};
}

Async<void> Counts::count(const std::string& shard, std::span<const store::StreamRecord> records) {
  const item::Item key = Row().set("id", kCountsPartition).set("part", shard);
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item({.table = table_, .key = key, .consistent = true}));
  const auto counted = found.item ? store::text_of(*found.item, kSequence) : std::string();
  std::map<State, int64_t> counts;
  for (const auto& record : records) {
    if (!is_behind(record.sequence, counted)) continue;
    add(counts, record.old_image, -1);
    add(counts, record.new_image, +1);
  }
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  if (counts.empty()) co_return store::Result<>{};
  store::Update update(table_, key);
  for (const auto& [state, more] : counts) update.add(name_of(state), more);
  update.set(kSequence, records.back().sequence);
  update.when(counted.empty() ? store::absent(kSequence) : store::equals(kSequence, counted));
  // Whose condition fails has lost the shard to somebody who has counted them.
  TABELLA_CO_TRY(store::was_made(co_await store_.update_item(std::move(update))));
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

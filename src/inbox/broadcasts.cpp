#include "inbox/broadcasts.h"

#include <algorithm>

#include "store/batches.h"
#include "store/time_slice.h"

namespace tabella::inbox {

using store::Async;

namespace {

// The others are forgotten when they come to more.
constexpr size_t kMostKept = 128u << 20;
// So often a list is read anew, which drops what has gone meanwhile.
constexpr std::chrono::hours kReload{6};

bool by_id(const std::shared_ptr<const StoredMessage>& a, const std::shared_ptr<const StoredMessage>& b) {
  return a->id < b->id;
}

size_t bytes_of(const BroadcastList& list) {
  size_t bytes = 0;
  for (const auto& one : list.all) bytes += one->row.bytes().size() + sizeof(StoredMessage);
  return bytes;
}

Async<std::vector<std::shared_ptr<const StoredMessage>>> parsed(std::vector<store::Item> rows) {
  std::vector<std::shared_ptr<const StoredMessage>> messages;
  messages.reserve(rows.size());
  store::TimeSlice slice;
  for (auto& row : rows) {
    messages.push_back(std::make_shared<const StoredMessage>(read_message(std::move(row))));
    co_await slice.yield_if_over();
  }
  co_return messages;
}

}  // namespace

const StoredMessage* BroadcastList::find(std::string_view id) const {
  const auto at =
      std::ranges::lower_bound(all, id, {}, [](const auto& one) -> std::string_view { return one->id; });
  return at != all.end() && (*at)->id == id ? at->get() : nullptr;
}

Async<Broadcasts::List> Broadcasts::current(Place place) {
  const auto box = public_box(place);
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = stats_key(box, kAll), .consistent = true}));
  Stats stats;
  if (!found.item) co_return std::make_shared<const BroadcastList>();
  read_stats_row(stats, *found.item);
  List known;
  {
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.find(place);
    if (kept != kept_.end() && clock_.now() - kept->second.loaded < kReload) known = kept->second.list;
  }
  if (!known) co_return co_await load(std::move(place), std::move(stats));
  if (known->sequence == stats.sequence) co_return known;
  co_return co_await extend(std::move(place), std::move(stats), std::move(known));
}

Async<Broadcasts::List> Broadcasts::load(Place place, Stats stats) {
  auto list = std::make_shared<BroadcastList>();
  list->sequence = stats.sequence;
  list->redactions = stats.redactions;
  TABELLA_CO_ASSIGN(
      auto rows, co_await store::query_all(store_, store::Query(table_)
                                                       .partition(kPartition, public_box(place).partition())
                                                       .where(store::begins_with(kSort, kMessagePrefix))
                                                       .consistent()));
  TABELLA_CO_ASSIGN(list->all, co_await parsed(std::move(rows)));
  co_return keep(place, std::move(list));
}

// Reads no more than what has changed since.
Async<Broadcasts::List> Broadcasts::extend(Place place, Stats stats, List known) {
  const auto box = public_box(place);
  TABELLA_CO_ASSIGN(auto keys, co_await store::query_all(store_, store::Query(table_)
                                                                     .index(kChangesIndex)
                                                                     .partition(kPartition, box.partition())
                                                                     .after(kSequence, known->sequence)
                                                                     .consistent()));
  std::vector<store::Item> changed;
  for (const auto& key : keys) {
    const auto sort = store::text_of(key, kSort);
    if (sort.starts_with(kMessagePrefix))
      changed.push_back(message_key(box, std::string_view(sort).substr(2)));
  }
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(changed)));
  TABELLA_CO_ASSIGN(auto news, co_await parsed(std::move(rows)));
  std::ranges::sort(news, by_id);
  auto list = std::make_shared<BroadcastList>();
  list->sequence = stats.sequence;
  list->redactions = stats.redactions;
  // Of two with one id the first is taken: what is new.
  std::ranges::set_union(news, known->all, std::back_inserter(list->all), by_id);
  co_return keep(place, std::move(list));
}

Broadcasts::List Broadcasts::keep(const Place& place, std::shared_ptr<BroadcastList> list) {
  const auto bytes = bytes_of(*list);
  const std::lock_guard lock(mutex_);
  auto& kept = kept_[place];
  if (kept.list && kept.list->sequence > list->sequence) return list;  // another was faster
  if (kept.list) bytes_ -= std::min(bytes_, bytes_of(*kept.list));
  const bool extended = kept.list && clock_.now() - kept.loaded < kReload;
  if (!extended) kept.loaded = clock_.now();
  kept.list = list;
  bytes_ += bytes;
  if (bytes_ > kMostKept) {
    auto this_one = std::move(kept);
    kept_.clear();
    kept_[place] = std::move(this_one);
    bytes_ = bytes;
  }
  return list;
}

}  // namespace tabella::inbox

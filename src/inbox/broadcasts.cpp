#include "inbox/broadcasts.h"

#include <algorithm>
#include <functional>
#include <map>

#include "store/batches.h"
#include "store/time_slice.h"

namespace tabella::inbox {

using store::Async;

namespace {

constexpr size_t kMostLists = 64u << 20;     // bytes
constexpr size_t kMostContents = 64u << 20;  // bytes
// So often a list is read anew, which drops what has gone meanwhile.
constexpr std::chrono::hours kReload{6};
// What has expired for so long is on no page any more.
constexpr std::chrono::seconds kForget = std::chrono::hours{1};

bool by_id(const Broadcasts::Message& a, const Broadcasts::Message& b) { return a->id < b->id; }

std::string name_of(const Place& place) { return public_box(place).partition(); }

std::string name_of(const Place& place, std::string_view id) { return name_of(place).append("/").append(id); }

size_t bytes_of(const BroadcastList& list) {
  size_t bytes = sizeof(list);
  for (const auto& one : list.all)
    bytes += sizeof(StoredMessage) + one->id.size() + one->state.category.size() + 64;
  return bytes;
}

}  // namespace

const StoredMessage* BroadcastList::find(std::string_view id) const {
  const auto at =
      std::ranges::lower_bound(all, id, {}, [](const auto& one) -> std::string_view { return one->id; });
  return at != all.end() && (*at)->id == id ? at->get() : nullptr;
}

Broadcasts::Broadcasts(store::Store& store, const Clock& clock, std::string table)
    : store_(store), clock_(clock), table_(std::move(table)), lists_(kMostLists), contents_(kMostContents) {}

Async<Broadcasts::List> Broadcasts::current(Place place) {
  const auto key = stats_key(public_box(place), kAll);
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item({.table = table_, .key = key, .consistent = true}));
  if (!found.item) co_return std::make_shared<const BroadcastList>();
  Stats stats;
  read_stats_row(stats, *found.item);
  const auto known = lists_.find(name_of(place));
  if (known && known->sequence == stats.sequence && clock_.now() - known->loaded < kReload) co_return known;
  // One reads it, and the others have it from him.
  auto& turns = turns_[std::hash<std::string>()(name_of(place)) % turns_.size()];
  const auto turn = co_await turns.take();
  co_return co_await renew(place, stats);
}

Async<Broadcasts::List> Broadcasts::renew(const Place& place, const Stats& stats) {
  const auto known = lists_.find(name_of(place));
  const bool is_usable = known && clock_.now() - known->loaded < kReload;
  if (is_usable && known->sequence >= stats.sequence) co_return known;
  auto list = std::make_shared<BroadcastList>();
  list->sequence = stats.sequence;
  list->redactions = stats.redactions;
  list->loaded = is_usable ? known->loaded : clock_.now();
  if (is_usable)
    TABELLA_CO_TRY(co_await extend(place, *known, *list));
  else
    TABELLA_CO_TRY(co_await load(place, *list));
  lists_.keep(name_of(place), list, bytes_of(*list));
  co_return list;
}

Async<void> Broadcasts::load(const Place& place, BroadcastList& list) {
  store::QueryRequest request = store::Query(table_)
                                    .partition(kPartition, public_box(place).partition())
                                    .where(store::begins_with(kSort, kMessagePrefix))
                                    .consistent();
  store::TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    for (auto& row : page.items) {
      list.all.push_back(take(place, std::move(row)));
      co_await slice.yield_if_over();
    }
    if (!page.last_key) co_return store::Result<void>();
    request.options.start_key = std::move(page.last_key);
  }
}

// Reads no more than what has changed since.
Async<void> Broadcasts::extend(const Place& place, const BroadcastList& known, BroadcastList& list) {
  const auto box = public_box(place);
  TABELLA_CO_ASSIGN(auto keys, co_await store::query_all(store_, store::Query(table_)
                                                                     .index(kChangesIndex)
                                                                     .partition(kPartition, box.partition())
                                                                     .after(kSequence, known.sequence)
                                                                     .consistent()));
  std::vector<store::Item> changed;
  for (const auto& key : keys) {
    const auto sort = store::text_of(key, kSort);
    if (sort.starts_with(kMessagePrefix))
      changed.push_back(message_key(box, std::string_view(sort).substr(2)));
  }
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(changed)));
  std::vector<Message> news;
  store::TimeSlice slice;
  for (auto& row : rows) {
    news.push_back(take(place, std::move(row)));
    co_await slice.yield_if_over();
  }
  std::ranges::sort(news, by_id);
  // Of two with one id the first is taken: what is new.
  std::ranges::set_union(news, known.all, std::back_inserter(list.all), by_id);
  std::erase_if(list.all, [&, now = clock_.now()](const auto& one) {
    return one->expires != 0 && time_at(one->expires * 1000) + kForget < now;
  });
  co_return store::Result<void>();
}

Broadcasts::Message Broadcasts::take(const Place& place, store::Item row) {
  const auto bytes = row.bytes().size() + sizeof(StoredMessage);
  auto whole = std::make_shared<const StoredMessage>(read_message(std::move(row)));
  auto listed = std::make_shared<const StoredMessage>(StoredMessage{.id = whole->id,
                                                                    .state = whole->state,
                                                                    .sequence = whole->sequence,
                                                                    .expires = whole->expires,
                                                                    .opt_in = whole->opt_in,
                                                                    .row = {}});
  if (!whole->state.redacted) contents_.keep(name_of(place, whole->id), std::move(whole), bytes);
  return listed;
}

Async<void> Broadcasts::add_contents(Place place, std::vector<Message*> messages) {
  std::erase_if(messages, [&](Message* message) {
    const auto kept = contents_.find(name_of(place, (*message)->id));
    if (kept) *message = kept;
    return kept != nullptr;
  });
  if (messages.empty()) co_return store::Result<void>();
  std::vector<store::Item> keys;
  for (const auto* message : messages) keys.push_back(message_key(public_box(place), (*message)->id));
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(keys)));
  std::map<std::string, Message, std::less<>> found;
  for (auto& row : rows) {
    const auto bytes = row.bytes().size() + sizeof(StoredMessage);
    const auto whole = std::make_shared<const StoredMessage>(read_message(std::move(row)));
    if (whole->state.redacted) continue;
    contents_.keep(name_of(place, whole->id), whole, bytes);
    found.emplace(whole->id, whole);
  }
  for (auto* message : messages) {
    const auto whole = found.find((*message)->id);
    *message = whole == found.end() ? nullptr : whole->second;
  }
  co_return store::Result<void>();
}

}  // namespace tabella::inbox

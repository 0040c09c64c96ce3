#include "inbox/boxes.h"

#include <algorithm>
#include <map>

#include "base/ids.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/time_slice.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;
using store::Update;

namespace {

// A transaction has a hundred actions: a row for each message, one for its category at most, and c#*.
constexpr size_t kMostAtOnce = 45;
constexpr int kMostTries = 50;
constexpr std::chrono::seconds kMostTime{10};
constexpr std::chrono::milliseconds kCheckEvery = std::chrono::days{1};
// Before the store removes what has expired.
constexpr std::chrono::milliseconds kRecountAfter = kGrace - std::chrono::days{1};
constexpr int64_t kMostChanges = 200;

void add_to(Tallies& tallies, const std::string& category, const Tally& tally) {
  tallies[kAll] += tally;
  if (!category.empty()) tallies[category] += tally;
}

int64_t second_of(TimePoint now) { return epoch_milliseconds(now) / 1000; }

store::Query rows_of(const std::string& table, const Box& box, const char* prefix) {
  return store::Query(table)
      .partition(kPartition, box.partition())
      .where(store::begins_with(kSort, prefix))
      .consistent();
}

store::Error still_contended() {
  return {store::ErrorCode::unavailable, "too much happens to this inbox at once; try again"};
}

// Of a broadcast, for somebody who has done nothing with it yet.
State untouched(const StoredMessage& broadcast) {
  return {.receipt = true, .category = broadcast.state.category, .arrived = broadcast.state.arrived};
}

// `row` is the message's own, or the receipt of the broadcast; null: there is none.
Entry entry_of(std::shared_ptr<const StoredMessage> message, const StoredMessage* row, const Marks& marks) {
  const auto state = row ? row->state : untouched(*message);
  const auto changed = row ? row->sequence : message->sequence;
  return {.message = std::move(message),
          .state = state,
          .changed = changed,
          .unread = is_unread(state, marks),
          .unseen = is_unseen(state, marks)};
}

// Whether a broadcast is for this user, who may have had the bell switched off then.
bool is_for(const Stats& stats, const StoredMessage& broadcast) {
  return stats.bell.steps.empty()
             ? !broadcast.opt_in
             : stats.bell.allows(broadcast.state.category, broadcast.state.arrived, !broadcast.opt_in);
}

// What a message adds to the counters of the box in which it is.
Tally counted_for(const Box& box, const State& state, const Marks& marks) {
  return box.is_public() ? Tally{.published = 1} : tally_of(state, marks);
}

bool is_shown(const Entry& entry, const FeedRequest& request) {
  if (entry.state.redacted) return false;
  if (request.category && entry.state.category != *request.category) return false;
  switch (request.show) {
    case Show::active: return !entry.state.hidden();
    case Show::unread: return !entry.state.hidden() && entry.unread;
    case Show::read: return !entry.state.hidden() && !entry.unread;
    case Show::archived: return entry.state.archived_at.has_value();
    case Show::snoozed: return !entry.state.archived_at && entry.state.snoozed_until;
  }
  return false;
}

}  // namespace

struct Boxes::Look {
  Stats stats;
  List list;
};

template <class Attempt>
Async<void> Boxes::until_made(Attempt attempt) {
  const auto until = std::chrono::steady_clock::now() + kMostTime;
  for (int tries = 0; tries < kMostTries && std::chrono::steady_clock::now() < until; ++tries) {
    TABELLA_CO_ASSIGN(const bool made, co_await attempt());
    if (made) co_return store::Result<void>();
    co_await store::pause_for(
        std::chrono::microseconds(random_bits() % 1000 * static_cast<uint64_t>(std::min(tries, 20))));
  }
  co_return std::unexpected(still_contended());
}

Async<Stats> Boxes::read_all_stats(const Box& box) {
  TABELLA_CO_ASSIGN(const auto rows, co_await store::query_all(store_, rows_of(table_, box, kStatsPrefix)));
  co_return read_stats(rows);
}

Async<Stats> Boxes::read_stats_of_all(const Box& box) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = stats_key(box, kAll), .consistent = true}));
  Stats stats;
  if (found.item) read_stats_row(stats, *found.item);
  co_return stats;
}

// The counters before the broadcasts: of what is counted in them there is nothing that the list has not yet.
Async<Boxes::Look> Boxes::look(const Box& box, bool all_rows) {
  Look look;
  TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(look.stats, co_await (all_rows ? read_all_stats(box) : read_stats_of_all(box)));
    TABELLA_CO_ASSIGN(look.list, co_await broadcasts_.current(box.place));
    if (look.stats.joined) co_return true;
    TABELLA_CO_TRY(co_await join(box, look.stats, look.list));
    co_return false;
  }));
  co_return look;
}

// Who is new has all broadcasts so far behind him: they are in his feed, and count as read.
Async<bool> Boxes::join(const Box& box, const Stats& stats, const List& list) {
  auto update = stats_update(table_, box, stats, sequence_.next(), clock_.now());
  set_marks(update, {.read = {0, list->sequence}, .seen = {0, list->sequence}}, {});
  set_redactions(update, list->redactions);
  co_return co_await write(std::move(update));
}

Async<bool> Boxes::write(Update all) {
  const auto made = co_await store_.update_item(std::move(all));
  if (made) co_return true;
  if (made.error().unsure || store::lost_a_race(made.error())) co_return false;
  co_return std::unexpected(made.error());
}

Async<bool> Boxes::commit(const Box& box, Update all, const Deltas& deltas, Writes rows) {
  for (const auto& [category, tally] : deltas) {
    if (category == kAll)
      add_tally(all, tally);
    else if (tally != Tally{})
      rows.push_back(category_update(table_, box, category, tally));
  }
  rows.push_back(std::move(all));
  const auto made = co_await store_.transact_write_items({.writes = std::move(rows)});
  if (made) co_return true;
  // Where the answer was lost, the next look shows whether it was made.
  if (made.error().unsure || store::lost_a_race(made.error())) co_return false;
  co_return std::unexpected(made.error());
}

// --- the feed

Async<FeedPage> Boxes::feed(Box box, FeedRequest request) {
  const auto now = clock_.now();
  TABELLA_CO_ASSIGN(const auto looked, co_await look(box, false));
  const auto& [stats, list] = looked;
  FeedPage page{.marks = stats.marks, .sequence = {stats.sequence, list->sequence}};
  page.is_known = request.known && request.known->sequence == page.sequence && now < request.known->until;
  if (page.is_known) co_return page;
  // Broadcasts from the newest on, before the place where the page begins.
  auto broadcast =
      request.before.empty()
          ? list->all.end()
          : std::ranges::lower_bound(list->all, request.before, {},
                                     [](const auto& one) -> const std::string& { return one->id; });
  store::TimeSlice slice;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  const auto take = [&](Entry entry) {
    page.next = entry.message->id;
    if (!is_live(*entry.message, now) || !is_shown(entry, request)) return;
    page.until = std::min(page.until, time_at(entry.message->expires * 1000));
    page.entries.push_back(std::move(entry));
  };
  const auto take_broadcast = [&](const StoredMessage* receipt) {
    const auto& message = *--broadcast;
    if (is_for(stats, *message)) take(entry_of(message, receipt, stats.marks));
  };
  const auto is_full = [&] { return page.entries.size() >= request.limit; };
  std::string before = request.before;
  for (bool more = true; more && !is_full();) {
    // More where a filter may leave out most.
    const auto rows_at_once = request.show == Show::active && !request.category ? request.limit + 1 : 200;
    auto query =
        store::Query(table_)
            .partition(kPartition, box.partition())
            .where(store::between(kSort, kMessagePrefix, before.empty() ? "m$" : kMessagePrefix + before))
            .descending()
            .consistent()
            .limit(static_cast<int64_t>(rows_at_once));
    TABELLA_CO_ASSIGN(auto rows, co_await store_.query(std::move(query)));
    more = rows.last_key.has_value();
    for (auto& row : rows.items) {
      auto own = std::make_shared<const StoredMessage>(read_message(std::move(row)));
      if (own->id == before) continue;  // the range includes its end
      while (!is_full() && broadcast != list->all.begin() && (*std::prev(broadcast))->id > own->id)
        take_broadcast(nullptr);
      if (is_full()) break;
      before = own->id;
      const bool has_broadcast = broadcast != list->all.begin() && (*std::prev(broadcast))->id == own->id;
      if (has_broadcast)
        take_broadcast(own.get());
      else if (!own->state.receipt)
        take(entry_of(own, own.get(), stats.marks));
      if (is_full()) break;
      co_await slice.yield_if_over();
    }
    if (more && !is_full() && std::chrono::steady_clock::now() > until) {
      page.next = before;
      TABELLA_CO_TRY(co_await add_contents(box.place, page.entries));
      co_return page;
    }
    if (!more)
      while (!is_full() && broadcast != list->all.begin()) {
        take_broadcast(nullptr);
        co_await slice.yield_if_over();
      }
  }
  // A full page may be the last one: then the next is empty.
  if (!is_full()) page.next.clear();
  TABELLA_CO_TRY(co_await add_contents(box.place, page.entries));
  co_return page;
}

// The list of broadcasts does not have what they say.
Async<void> Boxes::add_contents(const Place& place, std::vector<Entry>& entries) {
  std::vector<Broadcasts::Message*> broadcasts;
  for (auto& entry : entries)
    if (entry.state.receipt) broadcasts.push_back(&entry.message);
  if (broadcasts.empty()) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await broadcasts_.add_contents(place, std::move(broadcasts)));
  // Those that were redacted meanwhile say nothing any more.
  std::erase_if(entries, [](const Entry& entry) { return !entry.message; });
  co_return store::Result<void>();
}

// --- counting

Async<std::vector<store::Item>> Boxes::overdue(const Box& box, TimePoint now) {
  TABELLA_CO_ASSIGN(auto found, co_await store_.query(store::Query(table_)
                                                          .index(kExpiryIndex)
                                                          .partition(kPartition, box.partition())
                                                          .where(store::at_most(kExpires, second_of(now)))
                                                          .consistent()
                                                          .limit(kMostAtOnce)));
  std::vector<store::Item> keys;
  for (const auto& row : found.items)
    keys.push_back(message_key(box, std::string_view(store::text_of(row, kSort)).substr(2)));
  co_return keys;
}

// In this order: what is overdue was taken off before the counters are read, and of what they count there is
// nothing that the list has not yet.
Async<Counts> Boxes::counts(Box box) {
  Counts counts;
  const auto now = clock_.now();
  TABELLA_CO_TRY(co_await retire(box, now));
  TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(const auto looked, co_await look(box, true));
    const auto& [stats, list] = looked;
    const std::chrono::milliseconds unchecked(epoch_milliseconds(now) - stats.checked);
    if (unchecked > kRecountAfter) {
      TABELLA_CO_TRY(co_await recount(box, stats, stats.marks));
      co_return false;
    }
    if (stats.redactions < list->redactions) {
      TABELLA_CO_TRY(co_await reconcile(box, stats, list));
      co_return false;
    }
    if (unchecked > kCheckEvery) {
      auto update = stats_update(table_, box, stats, stats.sequence, now);
      set_checked(update, now);
      TABELLA_CO_TRY(co_await write(std::move(update)));
    }
    counts.tallies.clear();
    for (const auto& [category, tally] : stats.counters) counts.tallies[category] = stats.reported(category);
    store::TimeSlice slice;
    for (const auto& broadcast : list->all) {
      if (!is_live(*broadcast, now) || !is_for(stats, *broadcast)) continue;
      const auto& state = broadcast->state;
      add_to(counts.tallies, state.category, tally_of_broadcast(state.category, state.arrived, stats.marks));
      co_await slice.yield_if_over();
    }
    counts.sequence = {stats.sequence, list->sequence};
    co_return true;
  }));
  co_return counts;
}

// However many there are; whoever asks again goes on with it.
Async<void> Boxes::retire(Box box, TimePoint now) {
  const auto until = std::chrono::steady_clock::now() + kMostTime;
  while (true) {
    TABELLA_CO_ASSIGN(const auto late, co_await overdue(box, now));
    if (late.empty()) co_return store::Result<void>();
    if (std::chrono::steady_clock::now() > until) co_return std::unexpected(still_contended());
    TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
      TABELLA_CO_ASSIGN(const auto stats, co_await read_stats_of_all(box));
      co_return co_await remove_rows(box, stats, late, {});
    }));
  }
}

// Rows that count no more: expired ones, and receipts of broadcasts that were redacted.
Async<bool> Boxes::remove_rows(const Box& box, const Stats& stats, std::vector<store::Item> keys,
                               std::optional<int64_t> redactions) {
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(keys)));
  Deltas deltas;
  Writes writes;
  for (auto& row : rows) {
    const auto message = read_message(std::move(row));
    add_to(deltas, message.state.category, Tally{} - counted_for(box, message.state, stats.marks));
    writes.push_back(store::Delete(table_, message_key(box, message.id)));
  }
  auto all = stats_update(table_, box, stats, sequence_.next(stats.sequence), clock_.now());
  if (redactions) set_redactions(all, *redactions);
  co_return co_await commit(box, std::move(all), deltas, std::move(writes));
}

Async<bool> Boxes::reconcile(const Box& box, const Stats& stats, const List& list) {
  std::vector<const StoredMessage*> redacted;
  for (const auto& one : list->all)
    if (one->state.redacted && one->sequence > stats.redactions) redacted.push_back(one.get());
  std::ranges::sort(redacted, {}, &StoredMessage::sequence);
  const bool all = redacted.size() <= kMostAtOnce;
  if (!all) redacted.resize(kMostAtOnce);
  std::vector<store::Item> keys;
  for (const auto* one : redacted) keys.push_back(message_key(box, one->id));
  const auto up_to = all ? list->redactions : redacted.back()->sequence;
  co_return co_await remove_rows(box, stats, std::move(keys), up_to);
}

// What the counters are to be follows from the rows; the base makes them so, in one write.
Async<bool> Boxes::recount(const Box& box, const Stats& stats, const Marks& marks) {
  const auto now = clock_.now();
  // What is overdue is there and counted, until somebody takes it off.
  auto checked = now;
  Tallies truth;
  auto request = store::QueryRequest(rows_of(table_, box, kMessagePrefix));
  store::TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    for (auto& row : page.items) {
      const auto message = read_message(std::move(row));
      const bool tombstone = message.expires == 0;
      if (!tombstone) {
        add_to(truth, message.state.category, tally_of(message.state, marks));
        checked = std::min(checked, time_at(message.expires * 1000 - 1));
      }
      co_await slice.yield_if_over();
    }
    if (!page.last_key) break;
    request.options.start_key = std::move(page.last_key);
  }
  Tallies base;
  for (const auto& [category, tally] : stats.counters) base[category] += tally;
  for (const auto& [category, tally] : truth) base[category] -= tally;
  auto update = stats_update(table_, box, stats, sequence_.next(stats.sequence), now);
  set_marks(update, marks, base);
  set_checked(update, checked);
  co_return co_await write(std::move(update));
}

// --- changes by the user

Async<std::vector<std::string>> Boxes::change(Box box, std::vector<std::string> ids, Change change) {
  std::vector<std::string> found;
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  for (std::span<const std::string> left(ids); !left.empty();) {
    const auto some = left.first(std::min(left.size(), kMostAtOnce));
    left = left.subspan(some.size());
    std::vector<std::string> found_here;
    TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
      found_here.clear();
      co_return co_await change_some(box, some, change, found_here);
    }));
    found.insert(found.end(), found_here.begin(), found_here.end());
  }
  co_return found;
}

Async<bool> Boxes::change_some(const Box& box, std::span<const std::string> ids, const Change& change,
                               std::vector<std::string>& found) {
  TABELLA_CO_ASSIGN(const auto looked, co_await look(box, false));
  const auto& [stats, list] = looked;
  std::vector<store::Item> keys;
  for (const auto& id : ids) keys.push_back(message_key(box, id));
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(keys)));
  std::map<std::string, StoredMessage, std::less<>> there;
  for (auto& row : rows) {
    auto message = read_message(std::move(row));
    auto id = message.id;
    there.emplace(std::move(id), std::move(message));
  }
  const auto now = clock_.now();
  // A receipt is a later change than its broadcast, whatever clock that has its number from.
  const auto sequence = sequence_.next(std::max(stats.sequence, list->sequence));
  Deltas deltas;
  Writes writes;
  for (const auto& id : ids) {
    const auto at = there.find(id);
    std::optional<State> before;
    StoredMessage message;
    if (at != there.end()) {
      before = at->second.state;
      message = std::move(at->second);
    }
    if (!before || before->receipt) {
      const auto* broadcast = list->find(id);
      if (!broadcast || !is_live(*broadcast, now) || !is_for(stats, *broadcast)) continue;
      if (!before) message = {.id = id, .state = untouched(*broadcast), .expires = broadcast->expires};
    }
    if (!is_live(message, now)) continue;
    found.push_back(id);
    const auto old = message.state;
    change(message.state, sequence);
    if (message.state == old) continue;
    auto delta = tally_of(message.state, stats.marks);
    if (before) delta -= tally_of(*before, stats.marks);
    add_to(deltas, message.state.category, delta);
    writes.push_back(state_update(table_, box, message, before, sequence));
  }
  if (writes.empty()) co_return true;
  co_return co_await commit(box, stats_update(table_, box, stats, sequence, now), deltas, std::move(writes));
}

Async<bool> Boxes::redact(Box box, std::string id) {
  bool there = false;
  TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(const auto looked, co_await look(box, false));
    const auto& stats = looked.stats;
    TABELLA_CO_ASSIGN(auto found, co_await store_.get_item(
                                      {.table = table_, .key = message_key(box, id), .consistent = true}));
    const auto now = clock_.now();
    if (!found.item) co_return true;
    const auto message = read_message(std::move(*found.item));
    if (message.state.receipt || message.state.redacted) {
      there = there || (message.state.redacted && !message.state.receipt);
      co_return true;
    }
    there = true;
    const auto sequence = sequence_.next(stats.sequence);
    Deltas deltas;
    add_to(deltas, message.state.category, Tally{} - tally_of(message.state, stats.marks));
    Writes writes;
    writes.push_back(tombstone(table_, box, message, sequence, now));
    co_return co_await commit(box, stats_update(table_, box, stats, sequence, now), deltas,
                              std::move(writes));
  }));
  co_return there;
}

Async<void> Boxes::rewrite(Box box, std::string id, Rewrite rewrite) {
  bool gone = false;
  TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(const auto stats, co_await read_stats_of_all(box));
    TABELLA_CO_ASSIGN(auto found, co_await store_.get_item(
                                      {.table = table_, .key = message_key(box, id), .consistent = true}));
    if (!found.item) co_return true;
    const auto message = read_message(std::move(*found.item));
    if (message.state.receipt || message.state.redacted) co_return true;
    if (content_of(message).bytes().empty()) co_return true;
    const auto now_says = rewrite(content_of(message));
    gone = !now_says;
    if (gone) co_return true;
    const auto sequence = sequence_.next(stats.sequence);
    Writes writes;
    writes.push_back(content_update(table_, box, message, *now_says, sequence));
    co_return co_await commit(box, stats_update(table_, box, stats, sequence, clock_.now()), {},
                              std::move(writes));
  }));
  if (gone) TABELLA_CO_TRY(co_await redact(std::move(box), std::move(id)));
  co_return store::Result<void>();
}

Async<std::optional<Entry>> Boxes::find(Box box, std::string id) {
  TABELLA_CO_ASSIGN(const auto stats, co_await read_stats_of_all(box));
  TABELLA_CO_ASSIGN(auto found, co_await store_.get_item(
                                    {.table = table_, .key = message_key(box, id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  auto message = std::make_shared<const StoredMessage>(read_message(std::move(*found.item)));
  const auto* row = message.get();
  co_return entry_of(std::move(message), row, stats.marks);
}

// --- what the user wants

Async<Wishes> Boxes::wishes(Box box) {
  TABELLA_CO_ASSIGN(auto stats, co_await read_stats_of_all(box));
  co_return std::move(stats.wishes);
}

Async<Wishes> Boxes::set_wishes(Box box, WishChanges changes) {
  Wishes wishes;
  TABELLA_CO_TRY(co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(auto looked, co_await look(box, false));
    auto& [stats, list] = looked;
    const auto any_between = [&](const std::string& category, int64_t after, int64_t until) {
      return std::ranges::any_of(list->all, [&](const auto& one) {
        return (category == kAll || one->state.category == category) && one->state.arrived > after &&
               one->state.arrived <= until;
      });
    };
    wishes = stats.wishes;
    apply_changes(changes, wishes);
    for (const auto& [category, channels] : changes)
      if (const auto bell = channels.find(Channel::bell); bell != channels.end())
        stats.bell.note(category, list->sequence, bell->second);
    stats.bell.prune(any_between);
    auto update = stats_update(table_, box, stats, sequence_.next(stats.sequence), clock_.now());
    inbox::set_wishes(update, wishes, stats.bell);
    co_return co_await write(std::move(update));
  }));
  co_return wishes;
}

// --- marking everything

Async<void> Boxes::mark_read(Box box, std::optional<std::string> category) {
  co_return co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(auto looked, co_await look(box, true));
    auto& [stats, list] = looked;
    // Names that nothing has do not get into the row.
    const bool known =
        !category || stats.counters.contains(*category) ||
        std::ranges::any_of(list->all, [&](const auto& one) { return one->state.category == *category; });
    if (!known) co_return true;
    const auto sequence = sequence_.next(stats.sequence);
    const Mark mark{.own = sequence, .broadcast = list->sequence};
    if (category) {
      const auto gone = stats.reported(*category);
      stats.marks.read_in[*category] = mark;
      for (const auto field : {&Tally::unread, &Tally::unseen}) {
        stats.base[*category].*field += gone.*field;
        stats.base[kAll].*field += gone.*field;
      }
    } else {
      stats.marks.read = mark;
      stats.marks.read_in.clear();
      for (const auto& [name, counters] : stats.counters) {
        stats.base[name].unread = counters.unread;
        stats.base[name].unseen = counters.unseen;
      }
    }
    auto update = stats_update(table_, box, stats, sequence, clock_.now());
    set_marks(update, stats.marks, stats.base);
    co_return co_await write(std::move(update));
  });
}

Async<void> Boxes::mark_read_until(Box box, TimePoint until) {
  if (until >= clock_.now()) co_return co_await mark_read(std::move(box), {});
  const auto at = microseconds_of(until);
  co_return co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(const auto looked, co_await look(box, true));
    auto marks = looked.stats.marks;
    if (marks.read.own >= at && marks.read.broadcast >= at) co_return true;
    marks.read = {std::max(marks.read.own, at), std::max(marks.read.broadcast, at)};
    for (auto& [category, mark] : marks.read_in)
      mark = {std::max(mark.own, at), std::max(mark.broadcast, at)};
    co_return co_await recount(box, looked.stats, marks);
  });
}

Async<void> Boxes::mark_seen(Box box) {
  co_return co_await until_made([&]() -> Async<bool> {
    TABELLA_CO_ASSIGN(auto looked, co_await look(box, true));
    auto& [stats, list] = looked;
    const auto sequence = sequence_.next(stats.sequence);
    stats.marks.seen = {.own = sequence, .broadcast = list->sequence};
    for (const auto& [name, counters] : stats.counters) stats.base[name].unseen = counters.unseen;
    auto update = stats_update(table_, box, stats, sequence, clock_.now());
    set_marks(update, stats.marks, stats.base);
    co_return co_await write(std::move(update));
  });
}

// --- what has changed

Async<Mark> Boxes::sequence_of(Box box) {
  TABELLA_CO_ASSIGN(const auto looked, co_await look(box, false));
  co_return Mark{.own = looked.stats.sequence, .broadcast = looked.list->sequence};
}

Async<Changes> Boxes::changes(Box box, Mark since, bool was_away) {
  TABELLA_CO_ASSIGN(const auto looked, co_await look(box, false));
  const auto& [stats, list] = looked;
  const auto now = clock_.now();
  Changes changes{.marks = stats.marks, .sequence = {stats.sequence, list->sequence}};
  // What was redacted is known for a week; of broadcasts for as long as they would have lived, and longer.
  const auto oldest = microseconds_of(now - kGrace);
  TABELLA_CO_ASSIGN(auto changed, co_await store_.query(store::Query(table_)
                                                            .index(kChangesIndex)
                                                            .partition(kPartition, box.partition())
                                                            .after(kSequence, since.own)
                                                            .consistent()
                                                            .limit(kMostChanges)));
  const auto broadcasts =
      std::ranges::count_if(list->all, [&](const auto& one) { return one->sequence > since.broadcast; });
  const bool forgotten = was_away && since.own < oldest && since.own != stats.sequence;
  changes.too_long_ago = changed.last_key || broadcasts > kMostChanges || forgotten;
  if (changes.too_long_ago) co_return changes;
  std::vector<store::Item> keys;
  for (const auto& row : changed.items) {
    const auto sort = store::text_of(row, kSort);
    if (sort.starts_with(kMessagePrefix)) keys.push_back(message_key(box, std::string_view(sort).substr(2)));
  }
  for (const auto& one : list->all)
    if (one->sequence > since.broadcast) keys.push_back(message_key(box, one->id));
  if (keys.empty()) co_return changes;
  std::ranges::sort(keys, {}, [](const store::Item& key) { return key.bytes(); });
  keys.erase(std::ranges::unique(keys, {}, [](const store::Item& key) { return key.bytes(); }).begin(),
             keys.end());
  std::map<std::string, std::shared_ptr<const StoredMessage>, std::less<>> there;
  std::vector<std::string> ids;
  for (const auto& key : keys) ids.push_back(store::text_of(key, kSort).substr(2));
  TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, table_, std::move(keys)));
  for (auto& row : rows) {
    auto message = std::make_shared<const StoredMessage>(read_message(std::move(row)));
    there.emplace(message->id, message);
  }
  for (const auto& id : ids) {
    const auto own = there.find(id);
    const auto* broadcast = list->find(id);
    const bool is_own = own != there.end() && !own->second->state.receipt;
    if (!is_own && (!broadcast || !is_for(stats, *broadcast))) continue;
    const auto message =
        is_own ? own->second
               : *std::ranges::lower_bound(list->all, id, {},
                                           [](const auto& one) -> const std::string& { return one->id; });
    auto entry = entry_of(message, own != there.end() ? own->second.get() : nullptr, stats.marks);
    if (!is_live(*message, now) || entry.state.redacted)
      changes.removed.push_back(id);
    else
      changes.entries.push_back(std::move(entry));
  }
  TABELLA_CO_TRY(co_await add_contents(box.place, changes.entries));
  co_return changes;
}

}  // namespace tabella::inbox

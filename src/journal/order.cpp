#include "journal/order.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "journal/order_cursor.h"
#include "journal/replay.h"
#include "store/batches.h"
#include "store/rows.h"
#include "store/time_slice.h"

namespace tabella::journal {

using store::Async;

namespace {

// What one page may take: events are found to be deleted only once they were read, and slices of others are
// passed over.
constexpr size_t kReadPerEvent = 4;
constexpr size_t kPassedOver = 10'000;  // runs
// Events are read in steps, the first of which shows how large they are. Those behind may be larger.
constexpr size_t kLargestEventRow = 400 * 1024;
constexpr size_t kFirstStep = 20;
constexpr size_t kLongestStep = 500;
constexpr size_t kGrowthOfSteps = 25;
// How far around a missing event others are looked for that explain it.
constexpr uint64_t kNeighbours = 10'000;
// So many consecutive events are a range, and fewer are read one by one.
constexpr size_t kShortestRange = 4;
constexpr size_t kRowsOfRuns = 100;

}  // namespace

// Puts one page together.
class Order::PageReader {
 public:
  PageReader(const Order& order, const std::string& journal, const Filter& filter, Direction direction,
             uint64_t first, uint64_t last, size_t most_bytes)
      : order_(order),
        journal_(journal),
        filter_(filter),
        direction_(direction),
        cursor_(order.store_, {.table = order.table_,
                               .journal = journal,
                               .tag = filter.tag,
                               .direction = direction,
                               .first = first,
                               .last = last}),
        most_bytes_(most_bytes) {}

  // The page's position stays what it is where there is nothing to look at.
  Async<void> read(size_t limit, OrderPage& page) {
    while (page.events.size() < limit && read_ < limit * kReadPerEvent && passed_over_ < kPassedOver &&
           bytes_ < most_bytes_) {
      TABELLA_CO_ASSIGN(auto entries, co_await gather(std::min(limit - page.events.size(), step())));
      if (entries.empty() && at_end()) break;
      TABELLA_CO_TRY(co_await fetch(std::move(entries), page));
      co_await slice_.yield_if_over();
    }
    if (looked_to_ > 0) page.position = looked_to_;
    co_return store::Result<void>();
  }

  bool at_end() const { return !cut_off_ && waiting_.empty() && cursor_.at_end(); }

 private:
  struct Entry {
    uint64_t position = 0;
    std::string pid;
    uint64_t number = 0;
    std::optional<Event> event;
  };
  using Entries = std::vector<Entry>;

  // How many events to read at once: what fits the page, as far as is known.
  size_t step() const {
    if (read_ == 0) return std::clamp<size_t>(most_bytes_ / kLargestEventRow, 1, kFirstStep);
    const auto size = std::max<size_t>(bytes_ / read_, 1);
    const auto most = std::min(read_ * kGrowthOfSteps, kLongestStep);
    return std::clamp<size_t>((most_bytes_ - bytes_) / size, 1, most);
  }

  bool is_asked_for(const std::string& pid) const {
    if (filter_.first_slice <= 0 && filter_.last_slice >= kSlices - 1) return true;
    const auto slice = slice_of(pid);
    return filter_.first_slice <= slice && slice <= filter_.last_slice;
  }

  Async<Entries> gather(size_t most) {
    Entries entries;
    while (entries.size() < most && passed_over_ < kPassedOver && !at_end()) {
      if (waiting_.empty()) {
        TABELLA_CO_ASSIGN(auto runs, co_await cursor_.next(most - entries.size()));
        waiting_.assign(std::make_move_iterator(runs.begin()), std::make_move_iterator(runs.end()));
        co_await slice_.yield_if_over();
        continue;
      }
      auto& run = waiting_.front();
      if (is_asked_for(run.pid)) {
        take_from(run, most, entries);
      } else {
        looked_to_ = direction_ == Direction::forward ? run.last_position() : run.position;
        run.count = 0;
        ++passed_over_;
      }
      if (run.count == 0) waiting_.pop_front();
    }
    co_return entries;
  }

  void take_from(Run& run, size_t most, Entries& entries) {
    for (; run.count > 0 && entries.size() < most; --run.count) {
      const uint64_t place = direction_ == Direction::forward ? 0 : run.count - 1;
      entries.push_back({.position = run.position + place, .pid = run.pid, .number = run.number + place});
      if (direction_ == Direction::backward) continue;
      ++run.position;
      ++run.number;
    }
    looked_to_ = entries.back().position;
  }

  Async<void> fetch(Entries entries, OrderPage& page) {
    read_ += entries.size();
    TABELLA_CO_TRY(co_await read_heads(entries));
    // By entity and number; deleted ones need not be read.
    std::vector<Entry*> wanted;
    for (auto& entry : entries)
      if (entry.number > gone_[entry.pid].deleted_to) wanted.push_back(&entry);
    std::ranges::sort(wanted, {}, [](const Entry* entry) { return std::tie(entry->pid, entry->number); });
    std::vector<Entry*> single;
    for (size_t at = 0, end = 0; at < wanted.size(); at = end) {
      for (end = at + 1; end < wanted.size() && wanted[end]->pid == wanted[at]->pid &&
                         wanted[end]->number == wanted[end - 1]->number + 1;)
        ++end;
      const auto range = std::span(wanted).subspan(at, end - at);
      if (range.size() < kShortestRange) {
        single.insert(single.end(), range.begin(), range.end());
      } else {
        TABELLA_CO_TRY(co_await read_range(range));
      }
    }
    TABELLA_CO_TRY(co_await read_single(single));
    const auto now = order_.clock_.now();
    uint64_t taken_to = 0;
    for (auto& entry : entries) {
      if (bytes_ >= most_bytes_) {
        // What is left is read again with the next page, rather than held until this one was sent.
        cut_off_ = true;
        looked_to_ = taken_to;
        break;
      }
      taken_to = entry.position;
      if (!entry.event) TABELLA_CO_TRY(co_await look_again(entry));
      if (!entry.event) continue;
      bytes_ += entry.event->row().bytes().size();
      const auto expires = entry.event->expires();
      if (entry.event->is_deleted() || (expires && *expires <= now)) continue;
      TABELLA_CO_ASSIGN(const bool whole, co_await is_whole(entry.pid, *entry.event));
      if (!whole) continue;
      page.events.push_back(
          {.position = entry.position, .pid = std::move(entry.pid), .event = std::move(*entry.event)});
    }
    co_return store::Result<void>();
  }

  // Whether all are there that another program wrote together with it: else nobody shows it. Reading the
  // entity says so, once for each batch of a page.
  Async<bool> is_whole(const std::string& pid, const Event& event) {
    const auto place = event.batch_place();
    if (!place || !event.append_id().empty() || place->index >= event.number()) co_return true;
    const auto [known, is_new] = whole_batches_.try_emplace({pid, event.number() - place->index}, false);
    if (is_new) {
      auto replay =
          order_.journal_.replay({.journal = journal_, .pid = pid},
                                 {.from = event.number(), .to = event.number(), .skip_holes = true});
      TABELLA_CO_ASSIGN(const auto shown, co_await replay.next());
      known->second = !shown.empty();
    }
    co_return known->second;
  }

  // For an event that is not there. It may have been deleted or have expired since we read the head, or have
  // been deleted by another program, which tells us only by its counters; or it is one of a batch that
  // another program has not finished. Otherwise the history has a hole, which is for nobody to pass over
  // unseen.
  Async<void> look_again(Entry& entry) {
    const Entity entity{.journal = journal_, .pid = entry.pid};
    auto& gone = gone_[entry.pid];
    if (entry.number <= gone.deleted_to || entry.number <= gone.expiring_to) co_return store::Result<void>();
    if (!std::exchange(gone.is_sure, true)) {
      TABELLA_CO_ASSIGN(const auto head, co_await order_.journal_.heads().find(entity));
      TABELLA_CO_ASSIGN(const auto counters, co_await layout().read_counters(order_.store_, entity));
      gone.deleted_to = std::max(head.value_or(Head()).deleted_to, counters.deleted_to);
      gone.expiring_to = head.value_or(Head()).expiring_to;
      if (entry.number <= gone.deleted_to || entry.number <= gone.expiring_to)
        co_return store::Result<void>();
    }
    // Reading the entity knows the rest, given those on both sides.
    TABELLA_CO_ASSIGN(const auto from,
                      co_await neighbour(entity, entry.number, gone.deleted_to + 1, Direction::backward));
    TABELLA_CO_ASSIGN(const auto to, co_await neighbour(entity, entry.number, INT64_MAX, Direction::forward));
    auto replay = order_.journal_.replay(entity, {.from = from, .to = to});
    while (true) {
      auto next = co_await replay.next();
      if (!next) next.error().message.insert(0, fmt::format("at position {}: ", entry.position));
      TABELLA_CO_ASSIGN(auto events, std::move(next));
      if (events.empty()) co_return store::Result<void>();
      for (auto& event : events)
        if (event.number() == entry.number) entry.event = std::move(event);
    }
  }

  // The next number that has an event, up to `end`; without one the number itself.
  Async<uint64_t> neighbour(const Entity& entity, uint64_t number, uint64_t end, Direction direction) {
    const bool forward = direction == Direction::forward;
    const auto first = forward ? number : std::max(end, number - std::min(number, kNeighbours));
    const auto last = forward ? std::min(end - kNeighbours, number) + kNeighbours : number;
    for (std::optional at = number; at;) {
      TABELLA_CO_ASSIGN(auto step, co_await layout().read(order_.store_, entity, forward ? *at : first,
                                                          forward ? last : *at, direction));
      if (!step.events.empty()) co_return step.events.front().number();
      at = step.next;
      co_await slice_.yield_if_over();
    }
    co_return number;
  }

  // How far the events of these entities were deleted. Each head is read once for a page.
  Async<void> read_heads(const Entries& entries) {
    std::vector<item::Item> keys;
    for (const auto& entry : entries)
      if (gone_.try_emplace(entry.pid).second)
        keys.push_back(Heads::key_of({.journal = journal_, .pid = entry.pid}));
    if (keys.empty()) co_return store::Result<void>();
    TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(order_.store_, order_.journal_.heads().table(),
                                                               std::move(keys)));
    for (const auto& row : rows)
      if (const auto entity = Heads::entity_of(row)) {
        const auto head = Heads::head_of(row);
        gone_[entity->pid] = {.deleted_to = head.deleted_to, .expiring_to = head.expiring_to};
      }
    co_return store::Result<void>();
  }

  // Consecutive numbers of one entity.
  Async<void> read_range(std::span<Entry* const> range) {
    const auto first = range.front()->number;
    const auto last = range.back()->number;
    for (std::optional<uint64_t> from = first; from;) {
      Entity entity{.journal = journal_, .pid = range.front()->pid};
      TABELLA_CO_ASSIGN(auto step, co_await layout().read(order_.store_, std::move(entity), *from, last,
                                                          Direction::forward));
      for (auto& event : step.events)
        if (const auto number = event.number(); first <= number && number <= last)
          range[number - first]->event = std::move(event);
      from = step.next;
      co_await slice_.yield_if_over();
    }
    co_return store::Result<void>();
  }

  Async<void> read_single(const std::vector<Entry*>& single) {
    if (single.empty()) co_return store::Result<void>();
    std::vector<item::Item> keys;
    for (const auto* entry : single)
      keys.push_back(layout().key_of({.journal = journal_, .pid = entry->pid}, entry->number));
    TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(order_.store_, layout().table(), std::move(keys)));
    // `single` is in order.
    for (auto& row : rows) {
      const auto located = layout().locate(row);
      if (!located) continue;
      const auto wanted = std::tie(located->entity.pid, located->number);
      const auto found = std::ranges::lower_bound(
          single, wanted, {}, [](const Entry* entry) { return std::tie(entry->pid, entry->number); });
      if (found != single.end() && std::tie((*found)->pid, (*found)->number) == wanted)
        (*found)->event = layout().event_of(std::move(row), located->number);
    }
    co_return store::Result<void>();
  }

  const Layout& layout() const { return order_.journal_.layout(); }

  const Order& order_;
  const std::string& journal_;
  const Filter& filter_;
  const Direction direction_;
  OrderCursor cursor_;
  std::deque<Run> waiting_;  // read and not looked at yet
  uint64_t looked_to_ = 0;   // a position; 0: nothing yet
  // Up to where no event of an entity need be there.
  struct Gone {
    uint64_t deleted_to = 0;
    uint64_t expiring_to = 0;
    bool is_sure = false;  // it was looked at after an event was found to be missing
  };
  std::unordered_map<std::string, Gone, KeyedHash> gone_;
  std::map<std::pair<std::string, uint64_t>, bool> whole_batches_;  // by entity and first number
  size_t read_ = 0;
  size_t passed_over_ = 0;
  const size_t most_bytes_;
  size_t bytes_ = 0;
  bool cut_off_ = false;  // not all that was gathered is in the page
  store::TimeSlice slice_;
};

store::TablePlan Order::plan(const std::string& table) {
  return store::plan_table(table, {{kOrderPartition, item::Type::S}, {kOrderNumber, item::Type::N}});
}

Async<uint64_t> Order::last(std::string journal) const {
  TABELLA_CO_ASSIGN(const auto found, co_await store_.get_item(
                                          {.table = table_, .key = order_key(journal), .consistent = true}));
  const auto next = found.item ? store::number_of(*found.item, kOrderNext) : 1;
  co_return static_cast<uint64_t>(std::max<int64_t>(next, 1) - 1);
}

// The last position is read first: all rows up to there were written together with it, or before.
Async<OrderPage> Order::read(std::string journal, uint64_t after, size_t limit, Filter filter,
                             size_t bytes) const {
  OrderPage page{.position = after};
  TABELLA_CO_ASSIGN(page.last, co_await last(journal));
  if (after >= page.last) co_return page;
  PageReader reader(*this, journal, filter, Direction::forward, after + 1, page.last, bytes);
  TABELLA_CO_TRY(co_await reader.read(limit, page));
  if (reader.at_end()) page.position = page.last;
  co_return page;
}

Async<OrderPage> Order::read_backward(std::string journal, uint64_t before, size_t limit, Filter filter,
                                      size_t bytes) const {
  OrderPage page{.position = std::min<uint64_t>(before, 1)};
  TABELLA_CO_ASSIGN(page.last, co_await last(journal));
  if (before <= 1 || page.last == 0) co_return page;
  page.position = std::min(before, page.last + 1);
  PageReader reader(*this, journal, filter, Direction::backward, 1, page.position - 1, bytes);
  TABELLA_CO_TRY(co_await reader.read(limit, page));
  if (reader.at_end()) page.position = 1;
  co_return page;
}

Async<std::vector<Run>> Order::runs(std::string journal, uint64_t after) const {
  TABELLA_CO_ASSIGN(const auto to, co_await last(journal));
  if (after >= to) co_return std::vector<Run>();
  OrderCursor cursor(store_, {.table = table_, .journal = journal, .first = after + 1, .last = to});
  co_return co_await cursor.next(kRowsOfRuns);
}

}  // namespace tabella::journal

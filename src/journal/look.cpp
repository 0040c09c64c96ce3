// What is behind the heads: events that other programs have written.
#include <algorithm>
#include <memory>

#include "journal/continuity.h"
#include "journal/head_attributes.h"
#include "journal/journal.h"
#include "store/conditional.h"
#include "store/rows.h"
#include "store/time_slice.h"

namespace tabella::journal {

namespace names = head_attributes;
using store::Async;

namespace {

constexpr uint64_t kWindow = 100;  // numbers that are looked at together

// Follows the events of others behind a head. Numbers may be missing: reading finds that out. A batch at the
// end that is not whole may be one that is being written.
class Follower {
 public:
  explicit Follower(uint64_t highest)
      : continuity_(highest + 1, highest + 1, Direction::forward, Holes::skip) {}

  // False: the event is ours, and so is all behind it.
  bool take(Event& event) {
    if (!event.append_id().empty()) return false;
    found_.clear();
    last_ = event.number();
    return continuity_.take(event, found_);
  }
  uint64_t highest() const { return continuity_.next() - 1; }
  // Where the program that wrote them goes on behind them: at its last row, whatever batch that is of.
  uint64_t last_row() const { return std::max(last_, highest()); }
  bool met_hole() const { return continuity_.met_hole(); }

 private:
  Continuity continuity_;
  std::vector<Event> found_;
  uint64_t last_ = 0;
};

Async<std::unique_ptr<Follower>> follow(store::Store& store, const Layout& layout, Entity entity,
                                        uint64_t highest, uint64_t at_least) {
  auto follower = std::make_unique<Follower>(highest);
  store::TimeSlice slice;
  bool found = true;
  for (auto window = highest + 1; found || window <= at_least; window += kWindow) {
    found = false;
    for (std::optional<uint64_t> at = window; at;) {
      TABELLA_CO_ASSIGN(auto step,
                        co_await layout.read(store, entity, *at, window + kWindow - 1, Direction::forward));
      at = step.next;
      for (auto& event : step.events) {
        found = follower->take(event);
        if (found) continue;
        at.reset();
        break;
      }
      co_await slice.yield_if_over();
    }
  }
  co_return follower;
}

void set_deleted(Head& head, uint64_t to) {
  head.deleted_to = std::max(head.deleted_to, to);
  head.purge_to = std::max(head.purge_to, to);
  head.purged_to = std::max(head.purged_to, to);
}

}  // namespace

Async<Journal::Sight> Journal::look(Entity entity, uint64_t at_least, bool give_up_batch) const {
  TABELLA_CO_ASSIGN(auto stored, co_await heads_.find(entity));
  Sight sight{.stored = std::move(stored)};
  if (sight.stored) {
    sight.head = *sight.stored;
  } else {
    // The counters of others say where to begin, and whether all there was has been deleted.
    TABELLA_CO_ASSIGN(const auto counters, co_await layout_.read_counters(store_, entity));
    set_deleted(sight.head, counters.deleted_to);
    sight.head.highest = std::max(counters.high > 0 ? counters.high - 1 : 0, counters.deleted_to);
  }
  TABELLA_CO_ASSIGN(auto follower, co_await follow(store_, layout_, entity, sight.head.highest, at_least));
  if (!sight.stored && sight.head.highest > sight.head.deleted_to &&
      follower->last_row() == sight.head.highest) {
    // A counter is believed only where there is an event behind it: anybody can write one.
    TABELLA_CO_ASSIGN(follower, co_await follow(store_, layout_, entity, sight.head.deleted_to, at_least));
  }
  sight.head.highest = give_up_batch ? follower->last_row() : follower->highest();
  if (sight.stored && follower->met_hole()) {
    TABELLA_CO_ASSIGN(const auto counters, co_await layout_.read_counters(store_, entity));
    set_deleted(sight.head, std::min(counters.deleted_to, sight.head.highest));
  }
  co_return sight;
}

Async<std::optional<Head>> Journal::adopt(Entity entity) { return adopt_up_to(std::move(entity), 0, false); }

Async<std::optional<Head>> Journal::adopt_up_to(Entity entity, uint64_t at_least, bool give_up_batch) {
  const auto until = std::chrono::steady_clock::now() + options_.operation_timeout;
  while (true) {
    TABELLA_CO_ASSIGN(auto sight, co_await look(entity, at_least, give_up_batch));
    if (!sight.knows_entity()) co_return std::nullopt;
    const auto before = sight.stored.value_or(Head());
    const bool finds_deleted = sight.head.deleted_to != before.deleted_to;
    if (sight.stored && !sight.is_new() && !finds_deleted) co_return sight.head;
    auto update = store::Update(heads_.table(), Heads::key_of(entity))
                      .set(names::kHighest, sight.head.highest)
                      .set(names::kTime, epoch_milliseconds(clock_.now()))
                      .remove(names::kTagged);
    if (finds_deleted)
      update.set(names::kDeletedTo, sight.head.deleted_to)
          .set(names::kPurgeTo, sight.head.purge_to)
          .set(names::kPurgedTo, sight.head.purged_to)
          .when(is_still(names::kDeletedTo, before.deleted_to) && is_still(names::kPurgeTo, before.purge_to));
    update.when(sight.stored ? highest_is(before.highest) : store::absent(names::kId));
    TABELLA_CO_ASSIGN(const bool moved, store::was_made(co_await store_.update_item(std::move(update))));
    if (moved) {
      if (appended_ && sight.is_new()) appended_(entity, sight.head.highest);
      co_return sight.head;
    }
    if (std::chrono::steady_clock::now() >= until)
      co_return store::fail(store::ErrorCode::unavailable,
                            "others were appending to this entity all the time: try again");
  }
}

// Events expire in the order of their numbers, so those that have are all in front: halving finds the first
// that has not. One that is missing may be a hole, so what is in front of it is looked at too.
Async<uint64_t> Journal::lowest(Entity entity, Head head) const {
  uint64_t low = head.deleted_to + 1;
  uint64_t high = std::max(low, head.expiring_to + 1);
  for (auto middle = low; low < high; middle = low + (high - low) / 2) {
    TABELLA_CO_ASSIGN(auto step, co_await layout_.read(store_, entity, middle, middle, Direction::forward));
    if (step.events.empty() && low < middle) {
      TABELLA_CO_ASSIGN(step, co_await layout_.read(store_, entity, low, middle - 1, Direction::backward));
    }
    const bool expired =
        step.events.empty() || step.events.front().expires().value_or(TimePoint::max()) <= clock_.now();
    if (expired)
      low = middle + 1;
    else
      high = step.events.front().number();
  }
  co_return low;
}

Async<Extent> Journal::extent(Entity entity) const {
  TABELLA_CO_ASSIGN(const auto sight, co_await look(entity));
  TABELLA_CO_ASSIGN(const auto first, co_await lowest(entity, sight.head));
  co_return Extent{.lowest = first, .highest = sight.head.highest, .epoch = sight.head.epoch};
}

}  // namespace tabella::journal

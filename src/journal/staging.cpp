// Appends that take several transactions, and what is left of them when their owner dies.
#include <algorithm>

#include "base/ids.h"
#include "journal/appender.h"
#include "journal/event_attributes.h"
#include "journal/head_attributes.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::journal {

namespace names = head_attributes;
using store::Async;

namespace {

constexpr size_t kMostRemovals = 99;  // beside the head, in a transaction

store::Update free_head(store::Update update) {
  for (const auto name : {names::kStagedId, names::kStagedRows, names::kStagedFirst, names::kStagedLast,
                          names::kStagedEpoch, names::kStagedBeat})
    update.remove(name);
  return update;
}

constexpr std::chrono::milliseconds kRemovalPause{5};

}  // namespace

Async<bool> Appender::stage() {
  TABELLA_CO_ASSIGN(bool done, co_await begin_staging());
  if (!done) co_return false;
  for (auto from = first(); done;) {
    // Beside the head there are a counter, the batch id and the work that is done.
    const bool is_rest = last_that_fits(from, 4) >= last();
    const auto to = is_rest ? last() : std::min(last_that_fits(from, 1), last() - 1);
    TABELLA_CO_ASSIGN(done, is_rest ? co_await commit_staged(from) : co_await stage_rows(from, to));
    if (done && is_rest) co_return true;
    from = to + 1;
  }
  co_return co_await abandon_staging();
}

Async<bool> Appender::begin_staging() {
  staging_id_ = make_uuid();
  auto update = store::Update(journal_.heads_.table(), Heads::key_of(append_.entity))
                    .set(names::kHighest, head_->highest)
                    .set(names::kStagedId, staging_id_)
                    .set(names::kStagedRows, append_id_)
                    .set(names::kStagedFirst, first())
                    .set(names::kStagedLast, last())
                    .set(names::kStagedEpoch, append_.epoch.value_or(head_->epoch))
                    .set(names::kStagedBeat, staging_id_)
                    .when(head_is_as_known())
                    .return_old_on_failure();
  // Whoever takes an epoch from now on is to have a higher one.
  if (append_.epoch) update.set(names::kEpoch, *append_.epoch);
  Writes writes;
  writes.push_back(std::move(update));
  writes.push_back(store::Put(journal_.heads_.table(), Heads::work_key(append_.entity, Heads::Work::stage)));
  TABELLA_CO_ASSIGN(auto made, co_await transact(std::move(writes), first()));
  if (made == Made::perhaps) {
    TABELLA_CO_ASSIGN(const auto head, co_await journal_.heads_.find(append_.entity));
    made = head && head->staging && head->staging->owner == staging_id_ ? Made::yes : Made::later;
  }
  if (made == Made::yes) co_return true;
  head_ = std::exchange(found_, std::nullopt);
  head_is_stored_ = true;
  co_return false;
}

Async<bool> Appender::stage_rows(uint64_t from, uint64_t to) {
  return write_staged(from, to, [this, from, to] {
    Writes writes;
    writes.push_back(store::Update(journal_.heads_.table(), Heads::key_of(append_.entity))
                         .set(names::kStagedBeat, make_uuid())
                         .when(is_staging()));
    put_events(writes, from, to);
    return writes;
  });
}

Async<bool> Appender::commit_staged(uint64_t from) {
  return write_staged(from, last(), [this, from] {
    Writes writes;
    writes.push_back(free_head(move_head(is_staging())));
    put_events(writes, from, last());
    put_companions(writes);
    writes.push_back(
        store::Delete(journal_.heads_.table(), Heads::work_key(append_.entity, Heads::Work::stage)));
    return writes;
  });
}

// Until it is made or cannot be. A try whose answer was lost has put the row of `to` if it was made; the last
// row of all comes with the head.
Async<bool> Appender::write_staged(uint64_t from, uint64_t to, std::function<Writes()> make) {
  bool perhaps = false;
  while (true) {
    TABELLA_CO_ASSIGN(const auto made, co_await transact(make(), from));
    if (made == Made::yes) co_return true;
    perhaps = perhaps || made == Made::perhaps;
    if (perhaps && to == last()) perhaps_ = to;
    if (perhaps) {
      TABELLA_CO_ASSIGN(const bool there, co_await has_row(to));
      if (there) co_return true;
    }
    if (made == Made::no || std::chrono::steady_clock::now() >= deadline_) co_return false;
    TABELLA_CO_TRY(co_await before_another_try());
  }
}

// Somebody has fenced us off or taken over, or another program's rows are in the way. If its last transaction
// comes in late, the head is no longer ours: the append was made.
Async<bool> Appender::abandon_staging() {
  TABELLA_CO_TRY(co_await journal_.remove_staged(
      append_.entity, {.owner = staging_id_, .append_id = append_id_, .first = first(), .last = last()}));
  head_.reset();
  found_.reset();
  if (!perhaps_) co_return false;
  TABELLA_CO_TRY(co_await learn_head());
  TABELLA_CO_ASSIGN(const bool made, co_await was_made_before());
  if (!made) perhaps_.reset();
  co_return made;
}

Async<bool> Journal::take_over(Entity entity, Head::Staging staging, uint64_t epoch) {
  const auto before = std::exchange(staging.owner, make_uuid());
  TABELLA_CO_ASSIGN(const bool taken, store::was_made(co_await store_.update_item(
                                          store::Update(heads_.table(), Heads::key_of(entity))
                                              .set(names::kStagedId, staging.owner)
                                              .set(names::kStagedBeat, staging.owner)
                                              .set(names::kStagedEpoch, std::max(epoch, staging.epoch))
                                              .when(store::equals(names::kStagedId, before))
                                              .when(store::equals(names::kStagedBeat, staging.beat)))));
  if (!taken) co_return false;
  co_return co_await remove_staged(std::move(entity), std::move(staging));
}

// Nobody puts rows of the staging while the head is ours, so those that are removed are all.
Async<bool> Journal::remove_staged(Entity entity, Head::Staging staging) {
  const auto is_mine = store::equals(names::kStagedId, staging.owner);
  const auto until = std::chrono::steady_clock::now() + options_.operation_timeout;
  for (std::optional<uint64_t> at = staging.first; at;) {
    TABELLA_CO_ASSIGN(const auto step,
                      co_await layout_.read(store_, entity, *at, staging.last, Direction::forward));
    std::vector<store::TransactWrite> writes;
    for (const auto& event : step.events) {
      if (event.append_id() != staging.append_id || writes.size() >= kMostRemovals) continue;
      if (writes.empty())
        writes.push_back(store::Update(heads_.table(), Heads::key_of(entity))
                             .set(names::kStagedBeat, make_uuid())
                             .when(is_mine));
      // Another program may put its own there at any time.
      writes.push_back(store::Delete(layout_.table(), layout_.key_of(entity, event.number()))
                           .when(store::absent(layout_.key_attribute()) ||
                                 store::equals(event_attributes::kWriter, staging.append_id)));
    }
    const bool all_in_one = writes.size() < kMostRemovals;
    if (!writes.empty()) {
      TABELLA_CO_ASSIGN(const bool removed, co_await transact_until(std::move(writes), until));
      if (!removed) {
        TABELLA_CO_ASSIGN(const auto head, co_await heads_.find(entity));
        if (!head || !head->staging || head->staging->owner != staging.owner) co_return false;
        continue;  // the same step again, with what is there now
      }
    }
    if (all_in_one) at = step.next;
  }
  std::vector<store::TransactWrite> writes;
  writes.push_back(free_head(store::Update(heads_.table(), Heads::key_of(entity)).when(is_mine)));
  writes.push_back(store::Delete(heads_.table(), Heads::work_key(entity, Heads::Work::stage)));
  co_return co_await transact_until(std::move(writes), until);
}

// What can be made twice, until its answer is known. False: a condition failed.
Async<bool> Journal::transact_until(std::vector<store::TransactWrite> writes,
                                    std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto made = co_await store_.transact_write_items({.writes = writes});
    if (made) co_return true;
    const auto& error = made.error();
    if (store::failed_its_conditions(error)) co_return false;
    const bool again = error.unsure || may_pass(error);
    if (!again || std::chrono::steady_clock::now() >= until) co_return std::unexpected(error);
    co_await store::pause_for(kRemovalPause);
  }
}

}  // namespace tabella::journal

// Events that are no longer to be seen, and work that somebody has left undone.
#include <algorithm>

#include "journal/appender.h"
#include "journal/event_attributes.h"
#include "journal/head_attributes.h"
#include "journal/journal.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/rows.h"
#include "store/time_slice.h"

namespace tabella::journal {

namespace names = head_attributes;
using store::Async;

namespace {
constexpr uint64_t kPurgeStep = 1000;  // rows between two notes of how far we are
constexpr std::chrono::milliseconds kDeletionPause{5};
constexpr std::chrono::hours kForgetSeen{1};
}  // namespace

// The head decides: from then on nobody sees them. Rows are removed afterwards, and how far is noted down.
Async<uint64_t> Journal::delete_to(Entity entity, uint64_t to, bool permanently) {
  const auto until = std::chrono::steady_clock::now() + options_.operation_timeout;
  uint64_t marked_to = 0;
  while (true) {
    TABELLA_CO_ASSIGN(const auto head, co_await adopt(entity));
    if (!head) co_return 0;
    to = std::min(to, head->highest);
    marked_to = head->deleted_to;
    if (to <= (permanently ? head->purge_to : head->deleted_to)) break;
    const auto deleted_to = std::max(to, head->deleted_to);
    auto update = store::Update(heads_.table(), Heads::key_of(entity))
                      .set(names::kDeletedTo, deleted_to)
                      .when(is_still(names::kDeletedTo, head->deleted_to))
                      .when(is_still(names::kPurgeTo, head->purge_to));
    if (permanently) update.set(names::kPurgeTo, to);
    std::vector<store::TransactWrite> writes;
    writes.push_back(std::move(update));
    for (auto& row : layout_.low_counters(entity, deleted_to))
      writes.push_back(store::Put(layout_.table(), std::move(row)));
    if (permanently)
      writes.push_back(store::Put(heads_.table(), Heads::work_key(entity, Heads::Work::purge)));
    auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    if (made) break;
    // Somebody else has deleted some meanwhile, or is at the same rows; deleting twice does no harm.
    const bool again = made.error().unsure || may_pass(made.error());
    if (!again || std::chrono::steady_clock::now() >= until) co_return store::error_of(made);
    co_await store::pause_for(kDeletionPause);
  }
  if (layout_.marks_deleted() && !permanently)
    TABELLA_CO_TRY(co_await mark_deleted(entity, marked_to + 1, to));
  if (permanently) TABELLA_CO_TRY(co_await purge(entity, until));
  TABELLA_CO_ASSIGN(const auto head, co_await heads_.find(entity));
  co_return head ? head->deleted_to : 0;
}

Async<bool> Journal::purge(Entity entity, std::chrono::steady_clock::time_point until) {
  while (true) {
    TABELLA_CO_ASSIGN(const auto head, co_await heads_.find(entity));
    if (!head) co_return true;
    const auto from = head->purged_to + 1;
    const auto to = std::min(head->purge_to, head->purged_to + kPurgeStep);
    if (std::chrono::steady_clock::now() >= until) co_return false;
    std::vector<store::BatchWrite> removals;
    for (auto number = from; number <= to; ++number)
      removals.push_back({.put = false, .item = layout_.key_of(entity, number)});
    TABELLA_CO_TRY(co_await store::write_all(store_, layout_.table(), std::move(removals)));

    auto update = store::Update(heads_.table(), Heads::key_of(entity))
                      .set(names::kPurgedTo, to)
                      .when(store::exists(names::kId));
    if (to < head->purge_to) {
      TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
      continue;
    }
    // That was all, unless more is to be removed by now.
    std::vector<store::TransactWrite> writes;
    if (head->purge_to > 0)
      writes.push_back(std::move(update).when(is_still(names::kPurgeTo, head->purge_to)));
    else
      writes.push_back(
          store::Check(heads_.table(), Heads::key_of(entity)).when(is_still(names::kPurgeTo, 0)));
    writes.push_back(store::Delete(heads_.table(), Heads::work_key(entity, Heads::Work::purge)));
    TABELLA_CO_ASSIGN(const bool done, co_await transact_until(std::move(writes), until));
    if (done) co_return true;
  }
}

// For programs that only look at the events. Those that are gone need no mark.
Async<void> Journal::mark_deleted(Entity entity, uint64_t from, uint64_t to) {
  store::TimeSlice slice;
  for (auto number = from; number <= to; ++number) {
    TABELLA_CO_TRY(store::was_made(
        co_await store_.update_item(store::Update(layout_.table(), layout_.key_of(entity, number))
                                        .set(event_attributes::kDeleted, "true")
                                        .when(store::exists(layout_.key_attribute())))));
    co_await slice.yield_if_over();
  }
  co_return store::Result<void>();
}

Async<bool> Journal::finish_work(Entity entity) {
  TABELLA_CO_TRY(co_await purge(entity, std::chrono::steady_clock::now() + options_.operation_timeout));
  TABELLA_CO_ASSIGN(const auto head, co_await heads_.find(entity));
  if (!head || !head->staging) co_return true;
  const auto& staging = *head->staging;
  const auto now = clock_.elapsed();
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.since > kForgetSeen; });
    auto& seen = seen_[staging.owner];
    if (seen.beat != staging.beat) seen = {.beat = staging.beat, .since = now};
    if (now - seen.since < options_.staging_lease) co_return false;
    seen_.erase(staging.owner);
  }
  TABELLA_CO_ASSIGN(const bool removed, co_await take_over(entity, staging, staging.epoch));
  // Another program's events may have been in its way, which nobody has noticed since.
  if (removed) TABELLA_CO_TRY(co_await adopt(entity));
  co_return removed;
}

}  // namespace tabella::journal

#include "journal/replay.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::journal {

using store::Async;

Replay Journal::replay(Entity entity, Range range) const { return {*this, std::move(entity), range}; }

Async<void> Replay::begin() {
  begun_ = true;
  TABELLA_CO_ASSIGN(extent_, co_await journal_.extent(entity_));
  from_ = std::max(range_.from, extent_.lowest);
  to_ = std::min(range_.to, extent_.highest);
  if (from_ <= to_) read_from(forward() ? from_ : to_);
  co_return store::Result<void>();
}

void Replay::read_from(uint64_t number) {
  at_ = number;
  continuity_.emplace(number, extent_.lowest, range_.direction,
                      range_.skip_holes ? Holes::skip : Holes::refuse);
}

Async<Layout::Step> Replay::read_step() {
  co_return co_await journal_.layout_.read(journal_.store_, entity_, forward() ? *at_ : from_,
                                           forward() ? to_ : *at_, range_.direction);
}

Async<std::vector<Event>> Replay::next() {
  bool first = !begun_;
  if (first) TABELLA_CO_TRY(co_await begin());
  std::vector<Event> shown;
  while (at_ && shown.empty()) {
    co_await slice_.yield_if_over();  // much may be left out before there is something to show
    TABELLA_CO_ASSIGN(auto step, co_await read_step());
    if (std::exchange(first, false) && !step.events.empty() && reach_to_begin_of_batch(step.events.front()))
      continue;
    at_ = step.next;
    bool whole = true;
    for (auto& event : step.events)
      if (!(whole = continuity_->take(event, shown))) break;
    if (!whole)
      TABELLA_CO_TRY(co_await pass_hole());
    else if (!at_)
      TABELLA_CO_TRY(co_await check_end());
    std::erase_if(shown, [&](const Event& event) {
      return event.number() < range_.from || event.number() > range_.to || event.is_deleted();
    });
  }
  co_return shown;
}

// A batch of another program is shown as a whole or not at all, so all of it is read.
bool Replay::reach_to_begin_of_batch(const Event& event) {
  const auto batch = event.foreign_batch();
  if (!batch) return false;
  const auto batch_first = std::max(batch->first, extent_.lowest);
  const auto batch_last = std::min(batch->last, extent_.highest);
  if (forward() ? batch_first >= from_ : batch_last <= to_) return false;
  (forward() ? from_ : to_) = forward() ? batch_first : batch_last;
  read_from(forward() ? from_ : to_);
  return true;
}

// All of the range was read.
Async<void> Replay::check_end() {
  if (continuity_->has_open_batch()) {
    const auto end = forward() ? std::min(continuity_->batch_end(), extent_.highest)
                               : std::max(continuity_->batch_end(), extent_.lowest);
    if (forward() ? end > to_ : end < from_) {
      at_ = forward() ? to_ + 1 : from_ - 1;
      (forward() ? to_ : from_) = end;
      co_return store::Result<void>();
    }
    continuity_->drop_open_batch();
  }
  const bool came_to_end = forward() ? continuity_->next() > to_ : continuity_->next() < from_;
  if (came_to_end || range_.skip_holes) co_return store::Result<void>();
  co_return co_await pass_hole();
}

// What is missing may have been deleted or have expired since we began, or have been deleted by another
// program, which tells us only by its counters.
Async<void> Replay::pass_hole() {
  const auto missing = continuity_->next();
  TABELLA_CO_ASSIGN(const auto now, co_await journal_.extent(entity_));
  TABELLA_CO_ASSIGN(const auto counters, co_await journal_.layout_.read_counters(journal_.store_, entity_));
  const auto lowest = std::max(now.lowest, counters.deleted_to + 1);
  if (lowest <= missing)
    co_return store::fail(
        store::ErrorCode::internal,
        fmt::format("event {} of {} is missing, and was not deleted: its history has a hole", missing,
                    entity_.pid));
  at_.reset();
  extent_.lowest = lowest;
  from_ = std::max(from_, lowest);
  if (forward() && from_ <= to_) read_from(from_);
  co_return store::Result<void>();
}

}  // namespace tabella::journal

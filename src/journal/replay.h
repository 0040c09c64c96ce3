// The events of an entity, read step by step.
#pragma once

#include <optional>
#include <vector>

#include "journal/continuity.h"
#include "journal/journal.h"
#include "store/time_slice.h"

namespace tabella::journal {

// On one thread; the journal outlives it.
class Replay {
 public:
  Replay(const Journal& journal, Entity entity, Range range)
      : journal_(journal), entity_(std::move(entity)), range_(range) {}

  // The next events, in order; none once all were handed out. A number that is missing although it was
  // neither deleted nor has expired is an error that names it (internal): never a shorter history.
  store::Async<std::vector<Event>> next();
  // Known after the first next().
  const Extent& extent() const { return extent_; }

 private:
  bool forward() const { return range_.direction == Direction::forward; }
  store::Async<void> begin();
  void read_from(uint64_t number);
  store::Async<Layout::Step> read_step();
  bool reach_to_begin_of_batch(const Event& event);
  store::Async<void> check_end();
  store::Async<void> pass_hole();

  const Journal& journal_;
  const Entity entity_;
  const Range range_;
  Extent extent_;
  // What is read: the range as far as there are events, and the whole of a batch that it begins or ends in.
  uint64_t from_ = 1;
  uint64_t to_ = 0;
  std::optional<Continuity> continuity_;
  std::optional<uint64_t> at_;  // where to read on; nothing: the end
  bool begun_ = false;
  store::TimeSlice slice_;
};

}  // namespace tabella::journal

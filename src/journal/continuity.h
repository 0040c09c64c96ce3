// Whether events that are read one after the other are all there.
//
// Akka's and Pekko's plugins write events that belong together row by row, each of which says its place among
// them (Event::batch_place). If they die meanwhile some rows are missing: such a batch was never
// acknowledged, is shown by nobody, and those programs go on behind its numbers. So numbers that are missing
// inside of such a batch are no hole; all others are.
//
// A batch that says it has more rows than a batch can have, or that has more bytes than are held back, is
// none: its events are shown as they come, and a number that is missing there is a hole.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "journal/event.h"
#include "journal/layout.h"

namespace tabella::journal {

enum class Holes { refuse, skip };

// Takes events in the direction's order; on one thread.
class Continuity {
 public:
  // `next` is the number that is to come first; nothing below `lowest` is asked for.
  Continuity(uint64_t next, uint64_t lowest, Direction direction, Holes holes)
      : direction_(direction), holes_(holes), lowest_(lowest), next_(next) {}

  // Adds to `shown` what can be shown now: events of a batch come when its last one has. False: the number
  // next() is missing, and holes are refused; the event was not taken.
  bool take(Event& event, std::vector<Event>& shown);
  // Whether the rest of a batch is still to come, of which nothing was shown yet.
  bool has_open_batch() const { return batch_.has_value(); }
  // Leaves the open batch out: the numbers up to its end are used.
  void drop_open_batch();

  uint64_t next() const { return next_; }  // behind everything that was shown or left out
  bool met_hole() const { return met_hole_; }
  // Where the open batch ends, in the direction.
  uint64_t batch_end() const;

 private:
  struct Batch {
    Event::Batch numbers;
    std::vector<Event> events = {};
    size_t bytes = 0;
    bool broken = false;  // some are missing
  };

  bool begin_batch(const Event& event);
  void hold_back(Event& event, std::vector<Event>& shown);
  void show_batch(std::vector<Event>& shown);
  uint64_t after(uint64_t number) const { return direction_ == Direction::forward ? number + 1 : number - 1; }

  const Direction direction_;
  const Holes holes_;
  const uint64_t lowest_;
  uint64_t next_;
  bool met_hole_ = false;
  std::optional<Batch> batch_;
  std::optional<Event::Batch> too_large_;  // the last one that was
};

}  // namespace tabella::journal

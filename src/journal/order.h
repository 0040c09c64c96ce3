// The order of all events of a journal: each has one position, from 1 on and without gaps, and those of one
// entity are in the order of their numbers. By tag and by slice it is the same order with some left out.
//
// Rows of a table of ours say which events are at which positions, many to a row; the events themselves stay
// where they are. docs/storage_format.md, "Journal", has their bytes.
//
//   par              num    what
//   J#order          0      next: the next position; shards: how far each shard of the heads' stream is in it
//   J#all#BLOCK      first  the entities and numbers at positions first, first+1, …; a block has 10,000
//                           positions, and no row reaches into the next
//   J#tag#TAG        first  the positions, entities and numbers of events with this tag
//
// Placement (journal/placement.h) writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "journal/event.h"
#include "journal/journal.h"
#include "journal/order_rows.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::journal {

// An event at its position.
struct Placed {
  uint64_t position = 0;
  std::string pid;
  Event event;
};

struct Filter {
  std::string tag = {};  // empty: all
  int first_slice = 0;
  int last_slice = kSlices - 1;
};

struct OrderPage {
  std::vector<Placed> events;
  // Everything up to here was looked at: where to go on from. Events that were deleted or have expired are
  // left out, so it may be beyond the last event.
  uint64_t position = 0;
  uint64_t last = 0;  // the last position there is
};

// Thread-safe.
class Order {
 public:
  // All outlive it.
  Order(store::Store& store, const Clock& clock, const Journal& journal, std::string table)
      : store_(store), clock_(clock), journal_(journal), table_(std::move(table)) {}
  static store::TablePlan plan(const std::string& table);

  // What the events of a page take in memory, at most and one more.
  static constexpr size_t kPageBytes = 8u << 20;

  // Events behind `after`, at most `limit`, and not many more rows looked at than that takes: a page may be
  // empty although more is to come, as its position says. A number that is missing although it was neither
  // deleted nor has expired is an error that names it (internal), as of Replay::next().
  store::Async<OrderPage> read(std::string journal, uint64_t after, size_t limit, Filter filter,
                               size_t bytes = kPageBytes) const;
  // Backward: events before `before`, the last first; the position is that of the last one looked at, and 1
  // once there are no more.
  store::Async<OrderPage> read_backward(std::string journal, uint64_t before, size_t limit, Filter filter,
                                        size_t bytes = kPageBytes) const;
  // Whose events are behind `after`, without the events themselves: some of them, from the first on; none
  // where there are none.
  store::Async<std::vector<Run>> runs(std::string journal, uint64_t after) const;
  // The last position there is; 0: none.
  store::Async<uint64_t> last(std::string journal) const;

 private:
  class PageReader;

  store::Store& store_;
  const Clock& clock_;
  const Journal& journal_;
  const std::string table_;
};

}  // namespace tabella::journal

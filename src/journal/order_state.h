// How far the order of a journal is: its next position, and of each shard of the heads' stream the last
// record whose events have positions. One row, which changes only together with the rows of new positions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "item/value.h"
#include "store/rows.h"

namespace tabella::journal {

struct OrderMark {
  std::string sequence;  // of the last record that was handled
  uint64_t placed = 0;   // how many of its events have positions, if not all; 0: all
  TimePoint time;        // when that was
};

struct OrderState {
  uint64_t next = 1;
  bool is_new = true;                      // there is no such row yet
  std::map<std::string, OrderMark> marks;  // by shard
};

OrderState state_of(const std::optional<item::Item>& row);

// Moves the row from one state to the next; fails its condition if somebody else was faster. No position is
// given out without the row saying so: the next position tells whether anything else has changed.
store::Update move_order(const std::string& table, const std::string& journal, const OrderState& from,
                         const OrderState& to);

// Marks that nobody needs any more. A record may come again as long as the stream has its shard, which is a
// day at least, and any time where the store was closed for long: it keeps what its readers had not come to.
// So a mark is forgotten when it is old and its shard is gone: as many stay as the stream has shards.
struct KnownShards {
  std::set<std::string> names;
  TimePoint at;  // when they were those of the stream
};
bool has_old_marks(const OrderState& state, TimePoint now);
void forget_old_marks(OrderState& state, const KnownShards& shards);

// Sequence numbers are decimal, of whatever length. < 0, 0, > 0.
int compare_sequences(std::string_view a, std::string_view b);

}  // namespace tabella::journal

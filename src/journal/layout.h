// How events are laid out in their table: which rows there are, and what is in them. Two layouts, one
// interface; whoever uses it does not know which it is.
//
//   blocks  that of Akka's and Pekko's plugins for DynamoDB, which can share the table: `par` and `num`, a
//           hundred events to a partition, and counters of their own (SH, SL)
//   keys    the older one with a hash key only, a partition to an event
//
// Rows of ours have attributes that those plugins do not know and ignore.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/event.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::journal {

enum class Direction { forward, backward };

// What we write down with an event.
struct Recording {
  std::string
      append_id;  // a UUID, unlike that of every other append: Pekko's replay drops a writer that comes back
  TimePoint time;
  uint64_t epoch = 0;
  std::optional<TimePoint> expires;
  // Only where the append takes several transactions: Pekko never shows a single event that has one, and
  // loses the rest of a batch that a replay begins inside of.
  std::optional<Event::BatchPlace> place = {};
};

// Where a row of the table belongs.
struct Located {
  Entity entity;
  uint64_t number = 0;
};

// Thread-safe.
class Layout {
 public:
  struct Options {
    std::string table;
    size_t sequence_shards = 0;  // among how many rows the counters of an entity are spread; 0: the layout's
                                 // own default, 10 for blocks as Pekko has it, 1000 for keys
  };
  explicit Layout(Options options) : options_(std::move(options)) {}
  virtual ~Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  const std::string& table() const { return options_.table; }
  // With a stream of keys, by which events of other programs are noticed.
  virtual store::TablePlan plan() const = 0;

  virtual item::Item key_of(const Entity& entity, uint64_t number) const = 0;
  // The attribute of the key whose absence says that there is no such row.
  virtual std::string_view key_attribute() const = 0;
  virtual item::Item row_of(const Entity& entity, uint64_t number, const NewEvent& event,
                            const Recording& recording) const = 0;
  // The event that a row of the table is.
  virtual Event event_of(item::Item row, uint64_t number) const = 0;
  // What a key of the table stands for; nothing where it is no event's.
  virtual std::optional<Located> locate(item::ItemView key) const = 0;

  // Rows that go with an append of these numbers, for other programs to find the highest by. They replace
  // what is there.
  virtual std::vector<item::Item> high_counters(const Entity& entity, uint64_t first,
                                                uint64_t last) const = 0;
  // Likewise, for all up to `to` having been deleted.
  virtual std::vector<item::Item> low_counters(const Entity& entity, uint64_t to) const = 0;
  // Whether each event that is deleted and stays is to say so itself.
  virtual bool marks_deleted() const = 0;

  // Events from..to, of which some may be missing, in the direction's order: those of one step, and never
  // more than some hundred. `next` is where to go on from; nothing once all of from..to was read. The first
  // step of a range reads few rows where few are asked for.
  struct Step {
    std::vector<Event> events;
    std::optional<uint64_t> next;
  };
  virtual store::Async<Step> read(store::Store& store, Entity entity, uint64_t from, uint64_t to,
                                  Direction direction) const = 0;

  // What the counters of other programs say, and ours that we keep for them: all shards are read, which is
  // many rows. `high`: there was an event of this number at least; `deleted_to`: none up to here is left.
  struct Counters {
    uint64_t high = 0;
    uint64_t deleted_to = 0;
  };
  virtual store::Async<Counters> read_counters(store::Store& store, Entity entity) const = 0;

 protected:
  const Options options_;
};

std::unique_ptr<Layout> make_blocks_layout(Layout::Options options);
std::unique_ptr<Layout> make_keys_layout(Layout::Options options);

}  // namespace tabella::journal

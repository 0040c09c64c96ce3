// The service: the events of entities, appended, read and deleted, over any Store.
//
// Every entity has a head, a row in a table of ours: the highest number that was given out, how far events
// were deleted, and the epoch of its writer. An append is one transaction: it moves the head from the number
// that was expected and puts the events where none are. So a number is given out once, whoever else writes,
// and the highest survives the deletion of all events.
//
// More events than a transaction takes are staged: the head says who is staging which numbers, so that
// nobody else appends meanwhile; the rows are put in several transactions, each of which asks that the head
// still says so; and the last transaction puts the last rows and moves the head. No reader looks behind the
// head, and Akka's and Pekko's readers leave a batch out whose last row is not there. If whoever stages dies,
// the next who wants to append, or the sweeper, takes the staging over, removes its rows and frees the head.
//
// Other programs with Akka's or Pekko's plugin write events without knowing of heads. Whenever it matters we
// look behind the head for their rows, and move it (adopt).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "journal/event.h"
#include "journal/heads.h"
#include "journal/layout.h"
#include "store/store.h"

namespace tabella::journal {

// What the highest number is to be when events are appended.
class Expected {
 public:
  static Expected any() { return {}; }
  static Expected none() { return Expected(0); }
  static Expected version(uint64_t number) { return Expected(number); }

  std::optional<uint64_t> number() const { return number_; }

 private:
  Expected() = default;
  explicit Expected(uint64_t number) : number_(number) {}
  std::optional<uint64_t> number_;
};

struct Append {
  Entity entity;
  std::vector<NewEvent> events;
  Expected expected = Expected::any();
  // The writer's. A lower one than the head's is refused, a higher one becomes the head's.
  std::optional<uint64_t> epoch = {};
  // The same one twice gives the first answer. Kept for Journal::Options::batch_ids_kept.
  std::string batch_id = {};
  // None: the journal's own. Events expire in their order: one never goes before those in front of it.
  std::optional<std::chrono::seconds> time_to_live = {};
};

struct Appended {
  uint64_t first = 0;
  uint64_t last = 0;
  bool repeated = false;  // the batch was there already
};

// An append that was refused, with what is the case instead.
struct Conflict {
  enum class Kind { version, epoch, batch } kind = Kind::version;
  uint64_t actual = 0;  // the highest number; the epoch; of a batch, how many events it had
};

using AppendOutcome = std::variant<Appended, Conflict>;

// What there is to read of an entity.
struct Extent {
  uint64_t lowest = 1;   // the first event that may be read
  uint64_t highest = 0;  // the last number that was given out; 0: there never was an event
  uint64_t epoch = 0;
};

struct Range {
  uint64_t from = 1;
  uint64_t to = UINT64_MAX;
  Direction direction = Direction::forward;
  // Akka and Pekko use a number up for an event that they cannot store: whoever knows that of an entity can
  // read on behind it.
  bool skip_holes = false;
};

class Replay;

// Thread-safe.
class Journal {
 public:
  struct Options {
    std::string heads_table;
    std::chrono::seconds retention{0};  // of events where an append says nothing; 0: for ever
    std::chrono::seconds batch_ids_kept{30 * 24 * 3600};
    std::chrono::milliseconds operation_timeout{10'000};  // of one call, its own retries included
    std::chrono::milliseconds staging_lease{5'000};       // after so much silence a staging is taken over
  };
  // `appended` is told of each append of this process, on its thread.
  using Told = std::function<void(const Entity&, uint64_t highest)>;
  // What is referred to outlives it.
  Journal(store::Store& store, const Clock& clock, const Layout& layout, Options options, Told appended = {});

  static constexpr size_t kMostEvents = 10'000;                       // of one append
  static constexpr uint64_t kHighestEpoch = (uint64_t{1} << 53) - 1;  // which every language can count to
  static constexpr size_t kMostBytes = 32u << 20;

  store::Async<AppendOutcome> append(Append append);
  Replay replay(Entity entity, Range range) const;
  // With what other programs have written.
  store::Async<Extent> extent(Entity entity) const;
  // A new writer's epoch, higher than all before: whoever appends with a lower one from now on is refused.
  store::Async<uint64_t> take_epoch(Entity entity);
  // Up to a number, or to the highest if that is lower; the highest stays what it is. Permanently: the rows
  // are removed too, before it returns or, where that takes longer than an operation may, by finish_work().
  // Returns up to where all are deleted.
  store::Async<uint64_t> delete_to(Entity entity, uint64_t to, bool permanently);
  // Adds names to the confirmations of an event. False: there is no such event.
  store::Async<bool> confirm(Entity entity, uint64_t number, std::vector<std::string> by);
  // Moves the head over events that others have written. Returns the head as it is then; nothing where there
  // is no trace of the entity.
  store::Async<std::optional<Head>> adopt(Entity entity);
  // Does what somebody has left undone on this entity: removes the rows of a staging whose owner has been
  // silent since the last call, and those that are to be removed. False: somebody may still be at it.
  store::Async<bool> finish_work(Entity entity);

  const Layout& layout() const { return layout_; }
  const Heads& heads() const { return heads_; }

 private:
  friend class Appender;
  friend class Replay;

  // The head as it is stored, and as it is with what other programs have written behind it.
  struct Sight {
    std::optional<Head> stored;
    Head head;

    bool is_new() const { return head.highest != (stored ? stored->highest : 0); }
    bool knows_entity() const { return stored || head.highest > 0; }
  };
  // As far as there are rows, and to `at_least` if there are none. What is of a batch that is not whole comes
  // into sight only where it is given up.
  store::Async<Sight> look(Entity entity, uint64_t at_least = 0, bool give_up_batch = false) const;
  // adopt(), over what is in the way of an append.
  store::Async<std::optional<Head>> adopt_up_to(Entity entity, uint64_t at_least, bool give_up_batch);
  // The first event that has not expired.
  store::Async<uint64_t> lowest(Entity entity, Head head) const;
  // Removes what somebody has staged who is believed to be dead, or is fenced off by a higher epoch. False:
  // somebody else was faster, or he is alive.
  store::Async<bool> take_over(Entity entity, Head::Staging staging, uint64_t epoch);
  // Likewise, for the staging's owner.
  store::Async<bool> remove_staged(Entity entity, Head::Staging staging);
  store::Async<bool> transact_until(std::vector<store::TransactWrite> writes,
                                    std::chrono::steady_clock::time_point until);
  // False: there are rows left at that time.
  store::Async<bool> purge(Entity entity, std::chrono::steady_clock::time_point until);
  store::Async<void> mark_deleted(Entity entity, uint64_t from, uint64_t to);

  store::Store& store_;
  const Clock& clock_;
  const Layout& layout_;
  const Options options_;
  const Told appended_;
  const Heads heads_;

  // Of stagings that finish_work() has seen: their beats, and since when they are the same.
  struct Seen {
    std::string beat;
    Elapsed since;
  };
  std::mutex mutex_;
  std::map<std::string, Seen> seen_;  // by owner; guarded by mutex_
};

}  // namespace tabella::journal

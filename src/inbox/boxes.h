// The inbox of each user: his feed, his counts, and what he does with his messages.
//
// Every change of a box goes through its row c#*, by a condition on the sequence that it was planned on: so
// changes of one box come one after the other, and whoever has read that row knows the others. Only a message
// that arrives reads nothing before (posts.h).
//
// A message is gone at the second at which it expires. Whoever counts asks the index by expiry what is
// overdue, which mostly is nothing, and takes it off. So no counter waits for the time to live of the store,
// which removes rows a week later; a box that nobody has looked at for so long is counted anew.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "inbox/broadcasts.h"
#include "inbox/model.h"
#include "inbox/sequence.h"
#include "store/store.h"

namespace tabella::inbox {

enum class Show { active, unread, read, archived, snoozed };

// Of a page that somebody has: it is still right if nothing has changed since, and nothing of it has expired.
struct KnownPage {
  Mark sequence;
  TimePoint until;
};

struct FeedRequest {
  size_t limit = 20;
  std::string before = {};  // an id; empty: from the newest
  Show show = Show::active;
  std::optional<std::string> category = {};
  std::optional<KnownPage> known = {};
};

// A message as its reader sees it.
struct Entry {
  std::shared_ptr<const StoredMessage> message;  // with what it says
  State state;
  int64_t changed = 0;  // sequence of the last change of it, or of its receipt
  bool unread = false;
  bool unseen = false;
};

struct FeedPage {
  std::vector<Entry> entries;  // the newest first
  std::string next;            // to go on before this id; empty: there are no more
  Marks marks;
  Mark sequence;                       // changes behind it are not in here
  TimePoint until = TimePoint::max();  // when the first of them expires
  bool is_known = false;               // it is still as the request knows it; the rest is left out
};

struct Counts {
  Tallies tallies;  // "*" and each category
  Mark sequence;
};

struct Changes {
  bool too_long_ago = false;  // they are not known any more: all is to be read again
  std::vector<Entry> entries;
  std::vector<std::string> removed;
  Marks marks;
  Mark sequence;
};

// Thread-safe.
class Boxes {
 public:
  Boxes(store::Store& store, const Clock& clock, Broadcasts& broadcasts, Sequence& sequence,
        std::string table)
      : store_(store),
        clock_(clock),
        broadcasts_(broadcasts),
        sequence_(sequence),
        table_(std::move(table)) {}

  store::Async<FeedPage> feed(Box box, FeedRequest request);
  store::Async<Counts> counts(Box box);
  // Takes off the counters what has expired by then.
  store::Async<void> retire(Box box, TimePoint now);
  // What has changed since, a few hundred messages at most; for who comes back, or has been there all along.
  store::Async<Changes> changes(Box box, Mark since, bool was_away);
  // How far the box and its broadcasts have come. Lets in who is new.
  store::Async<Mark> sequence_of(Box box);

  // `change` makes of each message's state what it is to be; it is called again where somebody else was
  // faster. Gives the ids that are there.
  using Change = std::function<void(State& state, int64_t sequence)>;
  store::Async<std::vector<std::string>> change(Box box, std::vector<std::string> ids, Change change);
  // Takes a message away, with all that it says. False: there is none.
  store::Async<bool> redact(Box box, std::string id);
  // Makes it say something else; nothing takes it away. Where there is none, nothing happens.
  using Rewrite = std::function<std::optional<item::Value>(item::ValueView message)>;
  store::Async<void> rewrite(Box box, std::string id, Rewrite rewrite);
  // A user's message as it is now; nothing: it is not in the box.
  store::Async<std::optional<Entry>> find(Box box, std::string id);

  store::Async<Wishes> wishes(Box box);
  // Gives all of them. For what arrives from now on.
  store::Async<Wishes> set_wishes(Box box, WishChanges changes);

  // Everything so far, of a category or of all.
  store::Async<void> mark_read(Box box, std::optional<std::string> category);
  // Everything that has arrived by then. Reads all of the user's messages.
  store::Async<void> mark_read_until(Box box, TimePoint until);
  store::Async<void> mark_seen(Box box);

 private:
  using List = Broadcasts::List;
  using Writes = std::vector<store::TransactWrite>;
  // Of the messages that change, by category and for all.
  using Deltas = Tallies;
  struct Look;

  store::Async<Stats> read_all_stats(const Box& box);
  store::Async<Stats> read_stats_of_all(const Box& box);
  // Both, of a user who may be new.
  store::Async<Look> look(const Box& box, bool all_rows);
  store::Async<bool> join(const Box& box, const Stats& stats, const List& list);

  store::Async<void> add_contents(const Place& place, std::vector<Entry>& entries);

  // False: somebody else was faster.
  store::Async<bool> commit(const Box& box, store::Update all, const Deltas& deltas, Writes rows);
  store::Async<bool> write(store::Update all);
  store::Async<bool> change_some(const Box& box, std::span<const std::string> ids, const Change& change,
                                 std::vector<std::string>& found);
  store::Async<bool> remove_rows(const Box& box, const Stats& stats, std::vector<store::Item> keys,
                                 std::optional<int64_t> redactions);
  store::Async<std::vector<store::Item>> overdue(const Box& box, TimePoint now);
  store::Async<bool> reconcile(const Box& box, const Stats& stats, const List& list);
  store::Async<bool> recount(const Box& box, const Stats& stats, const Marks& marks);
  // Calls `attempt` until it is true.
  template <class Attempt>
  store::Async<void> until_made(Attempt attempt);

  store::Store& store_;
  const Clock& clock_;
  Broadcasts& broadcasts_;
  Sequence& sequence_;
  const std::string table_;
};

}  // namespace tabella::inbox

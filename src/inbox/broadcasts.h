// The messages for everybody, of each inbox: written once, and merged into each user's feed and counts when
// these are read. The list is the same for all users, so a process keeps it, and asks before each use whether
// it is still right.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "inbox/model.h"
#include "store/store.h"

namespace tabella::inbox {

struct BroadcastList {
  int64_t sequence = 0;    // of the last change
  int64_t redactions = 0;  // of the last that was a redaction
  // By id. Those that were redacted are there without what they said.
  std::vector<std::shared_ptr<const StoredMessage>> all;

  // Null: there is none.
  const StoredMessage* find(std::string_view id) const;
};

// Whether it is there for its readers, at this second.
inline bool is_live(const StoredMessage& message, TimePoint now) {
  return !message.state.redacted && message.expires > epoch_milliseconds(now) / 1000;
}

// Thread-safe.
class Broadcasts {
 public:
  Broadcasts(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  using List = std::shared_ptr<const BroadcastList>;
  // One request where nothing has changed.
  store::Async<List> current(Place place);

 private:
  store::Async<List> load(Place place, Stats stats);
  store::Async<List> extend(Place place, Stats stats, List known);
  List keep(const Place& place, std::shared_ptr<BroadcastList> list);

  struct Kept {
    List list;
    TimePoint loaded;
  };

  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  std::mutex mutex_;
  std::map<Place, Kept> kept_;  // guarded by mutex_
  size_t bytes_ = 0;            // guarded by mutex_; of them
};

}  // namespace tabella::inbox

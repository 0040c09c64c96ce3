// The messages for everybody, of each inbox: written once, and merged into each user's feed and counts when
// these are read. The list is the same for all users, so a process keeps it, and asks before each use whether
// it is still right. What they say is kept apart, as far as it fits.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lru_cache.h"
#include "inbox/model.h"
#include "store/store.h"
#include "store/turns.h"

namespace tabella::inbox {

struct BroadcastList {
  int64_t sequence = 0;    // of the last change
  int64_t redactions = 0;  // of the last that was a redaction
  TimePoint loaded;        // when all of it was read
  // By id, without what they say; those that were redacted, too.
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
  Broadcasts(store::Store& store, const Clock& clock, std::string table);

  using List = std::shared_ptr<const BroadcastList>;
  using Message = std::shared_ptr<const StoredMessage>;

  // One request where nothing has changed.
  store::Async<List> current(Place place);
  // Exchanges messages of the list for such with what they say; null where one is not there any more. No
  // request where this process has had them lately.
  store::Async<void> add_contents(Place place, std::vector<Message*> messages);

 private:
  store::Async<List> renew(const Place& place, const Stats& stats);
  store::Async<void> load(const Place& place, BroadcastList& list);
  store::Async<void> extend(const Place& place, const BroadcastList& known, BroadcastList& list);
  // Keeps what each says apart.
  Message take(const Place& place, store::Item row);

  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  LruCache<BroadcastList> lists_;
  LruCache<StoredMessage> contents_;
  std::array<store::Turns, 64> turns_;  // for who renews a list, by a hash of its place
};

}  // namespace tabella::inbox

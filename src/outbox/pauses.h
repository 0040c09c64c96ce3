// Destinations that are paused: nothing is sent there until they are resumed. "*" is everything. Rows of our
// table under the id "#pause".
//
// The work of a destination that is paused is moved to a part of the index that nobody looks at, so that it
// costs nothing, and kept there for as long as it takes; when it is resumed it is moved back, by whichever
// process comes to it, and has as much time as a new one.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::outbox {

struct Pause {
  std::string destination;  // a domain, or "*"
  TimePoint since = {};
  std::string reason = {};
  bool resuming = false;   // its work is being moved back
  TimePoint resumed = {};  // since then
};

// Thread-safe.
class Pauses {
 public:
  Pauses(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  store::Async<void> pause(std::string destination, std::string reason);
  store::Async<bool> resume(std::string destination);  // false: it was not paused
  store::Async<void> forget(std::string destination);  // once all its work is back
  store::Async<std::map<std::string, Pause>> all();
  // The same as it was about a second ago at most.
  store::Async<std::map<std::string, Pause>> lately();

 private:
  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  std::mutex mutex_;
  std::map<std::string, Pause> known_;  // guarded by mutex_
  std::optional<Elapsed> known_at_;     // guarded by mutex_
};

}  // namespace tabella::outbox

// How many calls of one receiver may be under way: one that is slow, or does not answer at all, keeps neither
// the timers nor the other receivers waiting.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::webhook {

// Thread-safe. Must outlive its places.
class Places {
 public:
  Places(schedule::Schedule& schedule, const Clock& clock, int most)
      : schedule_(schedule), clock_(clock), most_(most) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Given back when it is let go. Nothing: the receiver has enough of them, and the timer was put off: it
  // comes again, and that is no attempt.
  store::Async<std::shared_ptr<void>> take(const schedule::Firing& firing, std::string receiver);

 private:
  struct Receiver {
    int under_way = 0;
    int waiting = 0;  // about so many were put off
  };
  std::shared_ptr<void> take(const std::string& receiver);
  void give_back(const std::string& receiver);
  // The longer the more there are, and not the same for all.
  std::chrono::milliseconds pause(const std::string& receiver) const;

  schedule::Schedule& schedule_;
  const Clock& clock_;
  const int most_;
  mutable std::mutex mutex_;
  std::map<std::string, Receiver> receivers_;  // guarded by mutex_; those of which calls are under way
};

}  // namespace tabella::webhook

// Places in the order of a box's changes: microseconds since 1970, and each greater than the one before.
//
// What makes the order is the store: a change is made only if its number is greater than the last one's.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace tabella::inbox {

inline int64_t microseconds_of(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// Thread-safe.
class Sequence {
 public:
  explicit Sequence(const Clock& clock) : clock_(clock) {}

  // Greater than `after` and than all before.
  int64_t next(int64_t after = 0) {
    const auto now = microseconds_of(clock_.now());
    auto last = last_.load();
    while (true) {
      const auto next = std::max({now, last + 1, after + 1});
      // A box whose numbers are ahead of the clock does not take the others along.
      if (next > now + kAhead) return next;
      if (last_.compare_exchange_weak(last, next)) return next;
    }
  }

 private:
  static constexpr int64_t kAhead = 1'000'000;

  const Clock& clock_;
  std::atomic<int64_t> last_{0};
};

}  // namespace tabella::inbox

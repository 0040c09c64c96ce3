// Time comes in through a Clock, so that whatever depends on it can be tested by moving it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tabella {

using TimePoint = std::chrono::system_clock::time_point;
using Elapsed = std::chrono::nanoseconds;  // since a moment that never changes

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // How long ago something was: time that nobody sets, so that it neither jumps nor goes back.
  virtual Elapsed elapsed() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::system_clock::now(); }
  Elapsed elapsed() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{std::chrono::seconds{1'700'000'000}}) : now_(start) {}
  TimePoint now() const override { return now_.load(); }
  Elapsed elapsed() const override { return now().time_since_epoch(); }
  void advance(std::chrono::milliseconds by) { now_.store(now_.load() + by); }

 private:
  std::atomic<TimePoint> now_;
};

inline int64_t epoch_milliseconds(TimePoint t) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
}

// The time so many milliseconds after 1970; the last or first that there is, where that is further than a
// TimePoint can tell.
inline TimePoint time_at(int64_t milliseconds) {
  constexpr auto kLast = std::chrono::floor<std::chrono::milliseconds>(TimePoint::max().time_since_epoch());
  const std::chrono::milliseconds since(std::clamp<int64_t>(milliseconds, -kLast.count(), kLast.count()));
  return TimePoint(since);
}

inline double epoch_seconds(TimePoint t) { return static_cast<double>(epoch_milliseconds(t)) / 1000; }

}  // namespace tabella

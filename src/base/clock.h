// Time comes in through a Clock, so that whatever depends on it can be tested by moving it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tabella {

using TimePoint = std::chrono::system_clock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::system_clock::now(); }
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{std::chrono::seconds{1'700'000'000}}) : now_(start) {}
  TimePoint now() const override { return now_.load(); }
  void advance(std::chrono::milliseconds by) { now_.store(now_.load() + by); }

 private:
  std::atomic<TimePoint> now_;
};

inline int64_t epoch_milliseconds(TimePoint t) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
}

inline double epoch_seconds(TimePoint t) { return static_cast<double>(epoch_milliseconds(t)) / 1000; }

}  // namespace tabella

// The end of a stop, which is one for all that has to end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tabella::app {

// From its making on: whatever still hangs when the time is over is left, and the process ends.
class StopDeadline {
 public:
  explicit StopDeadline(std::chrono::milliseconds timeout);
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

  // What requests under way still have: all together three quarters of it; the rest is for the store.
  std::chrono::milliseconds grace() const;

 private:
  void watch();

  const std::chrono::steady_clock::time_point begun_;
  const std::chrono::steady_clock::time_point until_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;  // guarded by mutex_
  std::thread watch_;  // last: uses all of the above
};

}  // namespace tabella::app

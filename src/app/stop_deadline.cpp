#include "app/stop_deadline.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"

namespace tabella::app {

StopDeadline::StopDeadline(std::chrono::milliseconds timeout)
    : begun_(std::chrono::steady_clock::now()), until_(begun_ + timeout), watch_([this] { watch(); }) {}

StopDeadline::~StopDeadline() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  watch_.join();
}

std::chrono::milliseconds StopDeadline::grace() const {
  using std::chrono::milliseconds;
  const auto end = begun_ + (until_ - begun_) * 3 / 4;
  return std::max(milliseconds(0),
                  std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()));
}

void StopDeadline::watch() {
  std::unique_lock lock(mutex_);
  if (wake_.wait_until(lock, until_, [this] { return done_; })) return;
  log::warning("not everything came to its end in time; what was acknowledged is on disk");
  std::_Exit(0);
}

}  // namespace tabella::app

// How work that loops goes on: it lets others use its thread every few milliseconds, and ends at its
// deadline.
#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>

#include "store/error.h"
#include "store/time_slice.h"

namespace tabella::search {

// On one thread. For one piece of work: whoever it calls is handed the same one, so that many short steps
// count as the long one that they are together.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Pace(Time deadline = Time::max()) : deadline_(deadline) {}
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  Time deadline() const { return deadline_; }
  // Between two steps. False: the time is over.
  boost::asio::awaitable<bool> go_on() {
    co_await slice_.yield_if_over();
    co_return std::chrono::steady_clock::now() < deadline_;
  }

 private:
  store::TimeSlice slice_;
  const Time deadline_;
};

inline std::unexpected<store::Error> too_late() {
  return store::fail(store::ErrorCode::unavailable, "it took longer than it was given");
}

}  // namespace tabella::search

// For coroutines that loop over much without waiting for anything: lets others on their thread have a turn
// every few milliseconds.
#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::store {

class TimeSlice {
 public:
  explicit TimeSlice(std::chrono::microseconds slice = std::chrono::milliseconds(2))
      : slice_(slice), since_(std::chrono::steady_clock::now()) {}

  // Goes to the end of its thread's queue if its slice of time is used up.
  boost::asio::awaitable<void> yield_if_over() {
    if (std::chrono::steady_clock::now() - since_ < slice_) co_return;
    co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
    since_ = std::chrono::steady_clock::now();
  }

 private:
  const std::chrono::microseconds slice_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace tabella::store

// Coroutines that wait for something to happen in another thread.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tabella::engine {

// Thread-safe.
class Waiters {
 public:
  // Comes back, on the caller's executor, once wake() was called after `ready` said no, at once if it said
  // yes, and after `at_most` in any case.
  boost::asio::awaitable<void> wait(std::function<bool()> ready, std::chrono::milliseconds at_most);

  void wake();

 private:
  struct Waiting {
    boost::asio::any_io_executor executor;
    std::shared_ptr<boost::asio::steady_timer> timer;
  };
  std::mutex mutex_;
  std::list<Waiting> waiting_;  // guarded by mutex_
};

}  // namespace tabella::engine

// Where work that takes long is done: on threads beside the I/O threads, so that nobody else waits for it.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::store {

// Thread-safe; copies share the threads, which must outlive them.
class LongWork {
 public:
  LongWork() = default;      // has no threads: all is done where it is asked for
  template <class Executor>  // of an io_context or a thread_pool
  explicit LongWork(Executor threads)
      : threads_(threads), is_here_([threads] { return threads.running_in_this_thread(); }) {}

  // Does `work()` on one of the threads, at once if this is one, and comes back with what it returned or
  // threw.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> run(Work work) const {
    if (!threads_ || is_here_()) co_return work();
    co_return co_await boost::asio::co_spawn(
        *threads_, [&work]() -> boost::asio::awaitable<std::invoke_result_t<Work>> { co_return work(); },
        boost::asio::use_awaitable);
  }

  // Likewise for what itself waits.
  boost::asio::awaitable<void> await(boost::asio::awaitable<void> work) const {
    if (!threads_) co_return co_await std::move(work);
    co_await boost::asio::co_spawn(*threads_, std::move(work), boost::asio::use_awaitable);
  }

 private:
  std::optional<boost::asio::any_io_executor> threads_;
  std::function<bool()> is_here_;  // whether this is one of them
};

}  // namespace tabella::store

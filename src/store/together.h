// Does several things at once, on the thread that asks, and waits for all of them.
#pragma once

#include <exception>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::store {

// Throws what the first of them threw that failed, once all have ended. The executor is one thread's. Not to
// be cancelled.
inline boost::asio::awaitable<void> do_together(std::vector<boost::asio::awaitable<void>> works) {
  namespace asio = boost::asio;
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer all_done(executor, asio::steady_timer::time_point::max());
  size_t left = works.size();
  std::exception_ptr failure;
  for (auto& work : works)
    asio::co_spawn(executor, std::move(work), [&](const std::exception_ptr& failed) {
      if (failed && !failure) failure = failed;
      if (--left == 0) all_done.cancel();
    });
  while (left > 0) co_await all_done.async_wait(asio::as_tuple(asio::use_awaitable));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tabella::store

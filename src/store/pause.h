#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::store {

// Lets time go by, and others work.
inline boost::asio::awaitable<void> pause_for(std::chrono::microseconds length) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, length);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

}  // namespace tabella::store

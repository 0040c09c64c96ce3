#include "store/turns.h"

#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::store {

namespace asio = boost::asio;

// What a coroutine waits for is its own io_context's, with which it may be destroyed while it waits: nothing
// here keeps it.
struct Turns::Waiter {
  explicit Waiter(asio::any_io_executor executor) : came(std::move(executor), 1) {}

  asio::experimental::concurrent_channel<void(boost::system::error_code)> came;
  std::optional<Turn> turn;  // guarded by the mutex; goes on to the next if the waiter is gone
};

asio::awaitable<Turns::Turn> Turns::take() {
  auto executor = co_await asio::this_coro::executor;
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(taken_, true)) co_return Turn(*this);
    waiter = std::make_shared<Waiter>(std::move(executor));
    waiting_.push_back(waiter);
  }
  // Whoever is cancelled meanwhile does not come past the second wait.
  while (!has_turn(*waiter)) co_await waiter->came.async_receive(asio::as_tuple(asio::use_awaitable));
  co_return std::move(*waiter->turn);
}

bool Turns::has_turn(const Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  return waiter.turn.has_value();
}

void Turns::end() {
  std::shared_ptr<Waiter> next;
  {
    const std::lock_guard lock(mutex_);
    for (; !next && !waiting_.empty(); waiting_.pop_front()) next = waiting_.front().lock();
    if (!next) {
      taken_ = false;
      return;
    }
    next->turn.emplace(*this);
  }
  next->came.try_send(boost::system::error_code());
}

}  // namespace tabella::store

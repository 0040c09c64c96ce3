#include "library/turns.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella {

namespace asio = boost::asio;

asio::awaitable<Turns::Turn> Turns::take() {
  // Tracked: the caller's io_context must not run out of work while its coroutine waits here.
  const auto executor =
      asio::prefer(co_await asio::this_coro::executor, asio::execution::outstanding_work.tracked);
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [&](auto handler) {
        Resume resume = [executor, h = std::move(handler)]() mutable { asio::post(executor, std::move(h)); };
        if (take_or_wait(resume)) resume();
      },
      asio::use_awaitable);
  co_return Turn(*this);
}

// True: it is the caller's turn at once.
bool Turns::take_or_wait(Resume& resume) {
  const std::lock_guard lock(mutex_);
  if (!taken_) return taken_ = true;
  waiting_.push_back(std::move(resume));
  return false;
}

void Turns::end() {
  Resume next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      taken_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next();
}

}  // namespace tabella

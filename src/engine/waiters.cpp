#include "engine/waiters.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::engine {

namespace asio = boost::asio;

asio::awaitable<void> Waiters::wait(std::function<bool()> ready, std::chrono::milliseconds at_most) {
  // Leaves the list also when the coroutine is dropped where it waits.
  struct Entry {
    Waiters& waiters;
    std::list<Waiting>::iterator at;
    ~Entry() {
      const std::lock_guard lock(waiters.mutex_);
      waiters.waiting_.erase(at);
    }
  };
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = std::make_shared<asio::steady_timer>(executor, at_most);
  const auto enter = [&] {
    const std::lock_guard lock(mutex_);
    return waiting_.insert(waiting_.end(), {executor, timer});
  };
  const Entry entry{*this, enter()};
  if (ready()) co_return;
  // A wake-up from here on is posted behind this: it finds the timer waiting.
  co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
}

void Waiters::wake() {
  const std::lock_guard lock(mutex_);
  for (const auto& waiting : waiting_)
    asio::post(waiting.executor, [timer = waiting.timer] { timer->cancel(); });
}

}  // namespace tabella::engine

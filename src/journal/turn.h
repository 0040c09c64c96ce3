// Lets one coroutine at a time do something, in the order in which they come. For coroutines of one thread.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::journal {

// Outlives all who have it or wait for it.
class Turns {
 public:
  // Until it is destroyed.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) { turns.taken_ = true; }
    ~Turn() {
      if (turns_) turns_->end();
    }
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;

   private:
    Turns* turns_;
  };

  boost::asio::awaitable<Turn> take() {
    while (taken_) {
      const auto timer = std::make_shared<boost::asio::steady_timer>(
          co_await boost::asio::this_coro::executor, std::chrono::seconds(1));
      waiting_.push_back(timer);
      co_await timer->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    co_return Turn(*this);
  }

 private:
  void end() {
    taken_ = false;
    for (bool woken = false; !woken && !waiting_.empty(); waiting_.pop_front())
      if (const auto timer = waiting_.front().lock()) woken = timer->cancel() > 0;
  }

  bool taken_ = false;
  std::list<std::weak_ptr<boost::asio::steady_timer>> waiting_;
};

}  // namespace tabella::journal

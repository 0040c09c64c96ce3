// Lets coroutines do something one after the other, in the order in which they came, whichever threads they
// are on.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace tabella::store {

// Thread-safe. Outlives those who wait and those whose turn it is; they may be destroyed with their
// io_context, once its threads have ended.
class Turns {
 public:
  // Ends when it is destroyed.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_) turns_->end();
    }

   private:
    Turns* turns_;
  };

  // Comes back, on the caller's executor, once it is the caller's turn. Throws where it is cancelled.
  boost::asio::awaitable<Turn> take();

 private:
  struct Waiter;

  bool has_turn(const Waiter& waiter);
  void end();

  std::mutex mutex_;
  bool taken_ = false;                         // guarded by mutex_, and so is:
  std::deque<std::weak_ptr<Waiter>> waiting_;  // each is its coroutine's
};

}  // namespace tabella::store

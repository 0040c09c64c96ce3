// Lets coroutines do something one after the other, in the order in which they came, whichever threads they
// are on.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace tabella {

// Thread-safe. Outlives those who wait and those whose turn it is.
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

  // Comes back, on the caller's executor, once it is the caller's turn.
  boost::asio::awaitable<Turn> take();

 private:
  using Resume = std::move_only_function<void()>;

  bool take_or_wait(Resume& resume);
  void end();

  std::mutex mutex_;
  bool taken_ = false;          // guarded by mutex_, and so is:
  std::deque<Resume> waiting_;  // each resumes its coroutine
};

}  // namespace tabella

// Who wants to know of messages as they come, and the messages that come: those of this process at once,
// those that others take on the same store by looking for them.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "mail/service.h"

namespace tabella::mail {

// Thread-safe.
class Arrivals {
 public:
  // One listener's ids, in the order they came. On the thread of its executor.
  class Subscription {
   public:
    Subscription(const boost::asio::any_io_executor& executor, Nanoseconds since)
        : timer_(executor), since_(since) {}
    // Nothing: the time is over.
    boost::asio::awaitable<std::optional<std::string>> next(std::chrono::steady_clock::time_point until);

   private:
    friend class Arrivals;
    void push(std::string id);

    boost::asio::steady_timer timer_;
    const Nanoseconds since_;
    std::deque<std::string> ids_;
  };

  // To messages that come from now on.
  std::shared_ptr<Subscription> subscribe(const boost::asio::any_io_executor& executor, Nanoseconds now);
  void publish(const std::string& id);
  bool anyone();

  // Looks for the messages of others, once: those of the last moments that nobody has published yet.
  boost::asio::awaitable<void> look_for_others(Mail& mail);

 private:
  std::mutex mutex_;
  std::list<std::weak_ptr<Subscription>> subscriptions_;  // guarded by mutex_
  std::unordered_set<std::string> published_;             // guarded by mutex_; the last of them
  std::deque<std::string> published_in_order_;            // guarded by mutex_; the same, oldest first
};

}  // namespace tabella::mail

// Who waits for news of a box, and is woken when there are some: at once by this process, by looking for what
// others do on the same store.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/hash.h"
#include "base/metrics.h"
#include "store/store.h"

namespace tabella::inbox {

// Thread-safe.
class News {
 public:
  // Of one who waits; lives on the thread of its executor.
  class Subscription {
   public:
    Subscription(const boost::asio::any_io_executor& executor) : timer_(executor) {}  // NOLINT
    // Comes back at once if there were news since the last time. Whether there were.
    boost::asio::awaitable<bool> wait(std::chrono::milliseconds at_most);

   private:
    friend class News;
    boost::asio::steady_timer timer_;
    std::atomic<bool> told_{false};
    // Where it is listed; guarded by News::mutex_.
    std::vector<std::pair<std::string, std::list<std::weak_ptr<Subscription>>::iterator>> listed_;
  };

  // For as long as it is held: news of these partitions.
  std::shared_ptr<Subscription> subscribe(const boost::asio::any_io_executor& executor,
                                          std::vector<std::string> partitions);
  void tell(const std::string& partition);
  void stop();
  bool stopping() const { return stopping_; }
  size_t waiting() const { return waiting_; }

  // Looks for changes by other processes every so often, until stop().
  boost::asio::awaitable<void> look_for_others(store::Store& store, std::string table,
                                               std::chrono::milliseconds every);

 private:
  using Waiting = std::list<std::weak_ptr<Subscription>>;
  static void wake(const std::shared_ptr<Subscription>& subscription);
  std::vector<std::string> watched();
  void end(Subscription* subscription);

  std::atomic<bool> stopping_{false};
  std::atomic<size_t> waiting_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, Waiting, KeyedHash, std::equal_to<>> waiting_for_;  // guarded by mutex_
};

}  // namespace tabella::inbox

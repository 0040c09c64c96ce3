// Who waits for news of a journal or an entity, and is woken when there are some.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/hash.h"
#include "journal/event.h"
#include "journal/order.h"
#include "journal/recent_numbers.h"

namespace tabella::journal {

// Thread-safe. Those who wait are woken on their own threads, and end before it does. While somebody waits,
// the order's last position is looked for in the store as well, a few times a second and once for all of them
// (run()): other processes append too.
class Watch {
 public:
  // `shared`: other processes work on the same tables.
  explicit Watch(const Order& order, bool shared) : order_(order), shared_(shared) {}

  // News that this process has by itself.
  void appended(const Entity& entity, uint64_t highest);
  void placed(const std::string& journal, uint64_t last);

  // Come back once the entity's highest number (the journal's last position) may be beyond the one that is
  // known, and after `at_most` in any case; at once when stopped.
  boost::asio::awaitable<void> wait_for_event(Entity entity, uint64_t known,
                                              std::chrono::milliseconds at_most);
  boost::asio::awaitable<void> wait_for_position(std::string journal, uint64_t known,
                                                 std::chrono::milliseconds at_most);

  // Looks for what other processes append, until stop(). Where there are none it comes back at once.
  boost::asio::awaitable<void> run();
  void stop();

 private:
  struct Waiter;
  class Registration;
  using Waiters = std::list<std::shared_ptr<Waiter>>;
  struct Watched {
    Waiters waiters;                                               // for its positions
    std::unordered_map<std::string, Waiters, KeyedHash> entities;  // by pid

    bool anyone() const { return !waiters.empty() || !entities.empty(); }
  };

  static void wake(Waiters& waiters, uint64_t number);
  boost::asio::awaitable<void> wait(Entity entity, uint64_t known, std::chrono::milliseconds at_most);
  // With whether anybody waits for an entity of it.
  std::vector<std::pair<std::string, bool>> watched();
  boost::asio::awaitable<void> look(std::string journal, bool for_entities, uint64_t& seen);

  const Order& order_;
  const bool shared_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::map<std::string, Watched> journals_;  // that somebody waits for; guarded by mutex_
  RecentNumbers numbers_;                    // guarded by mutex_
  RecentNumbers positions_{1'000};           // the last ones of journals, without a pid; guarded by mutex_
};

}  // namespace tabella::journal

// Who waits for news of a journal or an entity, and is woken when there are some.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "journal/event.h"
#include "journal/order.h"

namespace tabella::journal {

// Thread-safe. Those who wait are woken on their own threads. While somebody waits, the order's last position
// is looked for in the store as well, a few times a second and once for all of them (run()): other processes
// append too.
class Watch {
 public:
  explicit Watch(const Order& order, bool shared) : order_(order), shared_(shared) {}

  // News that this process has by itself.
  void appended(const Entity& entity, uint64_t highest);
  void placed(const std::string& journal, uint64_t last);

  // Come back once the entity's highest number (the journal's last position) may be beyond the one that is
  // known, and after `at_most` in any case.
  boost::asio::awaitable<void> wait_for_event(Entity entity, uint64_t known,
                                              std::chrono::milliseconds at_most);
  boost::asio::awaitable<void> wait_for_position(std::string journal, uint64_t known,
                                                 std::chrono::milliseconds at_most);

  // Looks for what other processes append, until stop().
  boost::asio::awaitable<void> run();
  void stop();

 private:
  const Order& order_;
  const bool shared_;
};

}  // namespace tabella::journal

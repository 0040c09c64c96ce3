// The connections of one HttpClient on one io_context.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <unordered_set>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/client_connection.h"

namespace tabella::net {

// On one thread. Lives as long as somebody uses one of its connections or waits for one.
class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  ClientPool(std::shared_ptr<const ClientSettings> settings, boost::asio::any_io_executor executor);

  // A connection, which may still have to be opened; null if none was free in time. Who comes first is served
  // first.
  boost::asio::awaitable<std::shared_ptr<ClientConnection>> take(Deadline deadline);
  void give_back(std::shared_ptr<ClientConnection> connection);

  // Where the server is. A sentence if that cannot be found out in time.
  boost::asio::awaitable<std::expected<ClientConnection::Endpoints, std::string>> resolve(Deadline deadline);
  // It was not there after all.
  void forget_address() { endpoints_until_ = {}; }

  // Those that have rested too long.
  void close_idle();
  void shut_down();

 private:
  struct Waiter;
  class Queued;
  struct Lookup;
  class LookingOn;

  boost::asio::awaitable<bool> wait_for_turn(Deadline deadline);
  void pass_on();
  std::shared_ptr<ClientConnection> take_idle();
  void begin_sweep();
  std::shared_ptr<Lookup> begin_lookup();

  const std::shared_ptr<const ClientSettings> settings_;
  const boost::asio::any_io_executor executor_;
  size_t taken_ = 0;                                    // connections in use, or promised
  std::list<Waiter*> waiting_;                          // in the order they came
  std::unordered_set<ClientConnection*> active_;        // those whose deadlines are watched
  std::deque<std::shared_ptr<ClientConnection>> idle_;  // the last used at the back
  std::weak_ptr<Lookup> lookup_;                        // the one under way, for all
  ClientConnection::Endpoints endpoints_;               // as they were found last
  Deadline endpoints_until_{};
  boost::asio::steady_timer sweep_;
  bool sweeping_ = false;
};

}  // namespace tabella::net

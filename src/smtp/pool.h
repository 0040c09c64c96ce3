// Connections to SMTP servers that are kept for the next letter. How many letters are on their way at once is
// not its business: each gets a connection that rests, or one of its own.
//
// A server may close a connection that rests, or be about to (421). If that shows before it has accepted
// anything of the letter, the letter goes once more, over a fresh connection. Where TLS is only preferred and
// fails, the letter goes in the clear (ClientConnection::may_go_without_tls).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "net/transport.h"
#include "smtp/connection.h"

namespace tabella::smtp {

// What the certificates of servers are checked against; one for all pools. Thread-safe.
struct Trust {
  // Throws std::runtime_error with a sentence for the user. `ca_file` empty: the system's certificates.
  explicit Trust(const std::string& ca_file = "") : checked(ca_file) {}
  const net::TlsTrust& of(const Destination& destination) const {
    return destination.check_certificate ? checked : anyone;
  }

  net::TlsTrust checked;
  net::TlsTrust anyone = net::TlsTrust::anyone();
};

struct PoolOptions {
  Timeouts timeouts = {};
  size_t max_idle = 100;
  size_t max_idle_per_destination = 10;
  size_t max_letters = 100;                // of one connection
  std::chrono::milliseconds idle{10'000};  // a connection that has rested so long is closed
  std::chrono::milliseconds max_age{300'000};
};

// One per thread: on that of the executor.
class ConnectionPool {
 public:
  // `trust` must outlive it.
  ConnectionPool(boost::asio::any_io_executor executor, const Trust& trust, PoolOptions options = {});
  // Nothing may be under way.
  ~ConnectionPool();
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  // What `letter.data` shows must live until this is done. A server that cannot be reached, or that cannot be
  // made ready, gives all recipients that outcome.
  boost::asio::awaitable<Delivery> deliver(Destination destination, Letter letter);

  // Takes leave of those that rest, within PoolOptions::timeouts.quit for all of them, and keeps none from
  // now on.
  boost::asio::awaitable<void> close();

  size_t idle() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tabella::smtp

// Takes connections on a port and lets each be served, on one of the I/O threads, by a coroutine of its own;
// watches their deadlines, and ends them all when it stops. What is spoken on them is not known here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "net/limits.h"
#include "net/threads.h"
#include "net/transport.h"

namespace tabella::net {

struct ListenOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  size_t max_connections = 20'000;
  // What one connection too many is told before it is closed; empty: nothing. Without it such connections
  // wait until others end, and know nothing of it.
  std::optional<std::string> refusal;
  Limits* limits = nullptr;  // of the process
};

struct ListenerThread;  // listener.cpp's

// How long a reader may take over so many bytes, besides the time that any has: a slow line has its time; who
// only drips does not.
inline std::chrono::seconds time_to_read(size_t bytes) {
  constexpr size_t kSlowest = 16 * 1024;  // bytes a second
  return std::chrono::seconds(bytes / kSlowest);
}

// An accepted connection. On one thread.
class Connection {
 public:
  Connection(ListenerThread& thread, boost::asio::ip::tcp::socket socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Transport& transport() { return transport_; }

  // When it is over it is closed, whatever it is at.
  void expire_in(std::chrono::milliseconds timeout);
  void never_expire() { deadline_.reset(); }
  // An idle one is closed as soon as the listener stops; others may finish what they are at.
  void set_idle(bool idle) { idle_ = idle; }
  // One that waits for a request yields to new ones when there are too many; the one that waits longest
  // first.
  void set_waiting(bool waiting);
  // One that holds memory and waits for the other side is closed after some seconds while memory is short. To
  // be set again with each sign of life.
  void set_holding(bool holding);
  // Whether the listener is stopping: nothing new should begin.
  bool draining() const;

  // Writes all of it; each piece that goes out renews the deadline: a slow reader may take its time over a
  // large answer. False if it could not be written.
  boost::asio::awaitable<bool> write_all(std::array<boost::asio::const_buffer, 2> buffers,
                                         std::chrono::milliseconds timeout);
  // Takes in what is still coming for a while and drops it: closing at once would reset the connection and
  // take our last words away from the other side.
  boost::asio::awaitable<void> linger();

 private:
  friend struct ListenerThread;

  ListenerThread& thread_;
  Transport transport_;
  using TimePoint = std::chrono::steady_clock::time_point;
  std::optional<TimePoint> deadline_;
  std::optional<TimePoint> waiting_since_;
  std::optional<TimePoint> holding_since_;
  bool idle_ = true;
};

class Listener {
 public:
  // Must not throw; the connection is closed when it returns.
  using Serve = std::function<boost::asio::awaitable<void>(Connection&)>;

  // Listens at once. Throws std::runtime_error with a sentence for the user if it cannot.
  Listener(IoThreads& threads, ListenOptions options, Serve serve);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;
  size_t connections() const;

  // Takes no more connections, lets those under way finish for up to `grace`, then closes the rest.
  void stop(std::chrono::milliseconds grace);

  struct Impl;  // listener.cpp's

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tabella::net

// Answers that are sent while they are made: server-sent events, which may have no end, and JSON by lines.
// Whoever makes them waits for the client to take what was sent: a slow reader slows its own answer, and
// holds no more than one piece of it in memory.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "net/body_writer.h"
#include "net/call.h"
#include "net/listener.h"

namespace tabella::net {

// The events of one client. On the connection's thread.
class EventStream {
 public:
  explicit EventStream(Connection& connection) : connection_(connection) {}

  // Sends an event. `id` is what the client comes back with if the connection breaks; `event` may be empty;
  // `data` may have several lines. False: the client is gone, or does not read.
  boost::asio::awaitable<bool> send(std::string_view id, std::string_view event, std::string_view data);
  // To be called while there is nothing to say: says so now and then, so that a client that is gone is
  // noticed. False likewise.
  boost::asio::awaitable<bool> keep_alive();
  // Nothing more is to be sent: the server is stopping.
  bool ended() const { return connection_.draining(); }

 private:
  boost::asio::awaitable<bool> write(std::string_view text);

  Connection& connection_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Where a client wants to go on, which was sent events before: its Last-Event-ID, or ?last-event-id= for
// those that cannot set headers. Empty: it is new.
std::string last_event_id(const Call& call);

// `tell` sends until stream.ended() or something fails. It must own what it uses: the call is gone by then.
void answer_events(Call& call, std::function<boost::asio::awaitable<void>(EventStream&)> tell);

// Lines of JSON, gathered into pieces. On the connection's thread.
class LineWriter {
 public:
  explicit LineWriter(BodyWriter& body) : body_(body) {}

  // The line to append one value to. Ended by end_line().
  std::string& line() { return text_; }
  // False: the client is gone, or does not read.
  boost::asio::awaitable<bool> end_line();
  boost::asio::awaitable<bool> flush() { return body_.send(text_); }

 private:
  BodyWriter& body_;
  std::string text_;
};

// `write` returns false if it could not come to its end: the connection is then closed in the middle, so that
// nobody takes what was sent for all. It must own what it uses.
void answer_lines(Call& call, std::function<boost::asio::awaitable<bool>(LineWriter&)> write);

}  // namespace tabella::net

// Hands one letter to one server, over a connection of its own.
#pragma once

#include <chrono>
#include <expected>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "smtp/connection.h"

namespace tabella::smtp {

using Relay = Destination;

// What the server said, or what happened on the way.
struct SendError {
  int code = 0;          // the server's; 0: there was no answer
  bool refused = false;  // by the rules for addresses
  std::string message;
};

// Sends it to all recipients or to none, within `timeout` for the whole. The answer to the message.
boost::asio::awaitable<std::expected<std::string, SendError>> send(Relay relay, Letter letter,
                                                                   std::chrono::milliseconds timeout);

}  // namespace tabella::smtp

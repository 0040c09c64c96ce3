// The body of an answer that is sent while it is made, so that it need not be in memory as a whole: in
// chunks, so that the other side can tell its end from a connection that broke.
#pragma once

#include <chrono>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "net/listener.h"

namespace tabella::net {

// On the connection's thread.
class BodyWriter {
 public:
  // Not `chunked`: HTTP/1.0, where the body ends with the connection.
  BodyWriter(Connection& connection, bool chunked, std::chrono::milliseconds timeout)
      : connection_(connection), chunked_(chunked), timeout_(timeout) {}

  // Sends the text and leaves it empty. False: the other side is gone.
  boost::asio::awaitable<bool> send(std::string& text);
  // Says that this was all.
  boost::asio::awaitable<bool> finish();

 private:
  Connection& connection_;
  const bool chunked_;
  const std::chrono::milliseconds timeout_;
  size_t sent_ = 0;
  std::chrono::steady_clock::duration waited_{0};  // for the other side to take it
};

}  // namespace tabella::net

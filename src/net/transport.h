// The bytes of one outbound connection, plain or by TLS.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <tuple>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tabella::net {

// What TLS connections are checked against. Thread-safe once it is made.
class TlsTrust {
 public:
  // `ca_file` empty: the system's certificates. Throws std::runtime_error with a sentence for the user.
  explicit TlsTrust(const std::string& ca_file);
  ~TlsTrust();
  TlsTrust(const TlsTrust&) = delete;
  TlsTrust& operator=(const TlsTrust&) = delete;

 private:
  friend class Transport;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// On one thread.
class Transport {
 public:
  using Error = boost::system::error_code;
  using Transferred = std::tuple<Error, size_t>;

  // `trust` null: plain.
  Transport(const boost::asio::any_io_executor& executor, const TlsTrust* trust);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  boost::asio::awaitable<std::tuple<Error>> connect(const boost::asio::ip::tcp::endpoint& endpoint);
  // The handshake, with `host` checked; nothing to do for a plain one.
  boost::asio::awaitable<Error> secure(const std::string& host);
  boost::asio::awaitable<Transferred> write(std::array<boost::asio::const_buffer, 2> buffers);
  boost::asio::awaitable<Transferred> read_some(boost::asio::mutable_buffer room);

  // Ends whatever is under way.
  void close();
  // Whether the other side has neither closed it nor sent something that nobody asked for.
  bool is_quiet();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::net

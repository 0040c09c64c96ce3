// One connection of an HttpClient, and the exchange that is under way on it. On one thread.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/client.h"
#include "net/http.h"
#include "net/transport.h"

namespace tabella::net {

class ClientPool;

// What all connections of a client have in common.
struct ClientSettings {
  Url server;
  ClientOptions options;

  // Where its connections go to.
  const Url& next_hop() const { return options.tunnel ? options.tunnel->proxy : server; }
};

class ClientConnection {
 public:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

  ClientConnection(const boost::asio::any_io_executor& executor,
                   std::shared_ptr<const ClientSettings> settings);

  bool is_open() const { return open_; }
  // Tries those that may be reached in turn. A sentence if none will do.
  boost::asio::awaitable<std::expected<void, ClientError>> open(Endpoints endpoints);
  boost::asio::awaitable<std::expected<void, ClientError>> exchange(std::string_view head,
                                                                    std::string_view body, size_t max_body);

  // Its time is over: whatever is under way ends.
  void expire() {
    timed_out_ = true;
    transport_.close();
  }
  void begin(std::shared_ptr<ClientPool> pool, std::chrono::steady_clock::time_point deadline);
  // Nobody uses it any more: what it holds of the last answer goes. False if it cannot be used again.
  bool rest();
  // Whether the other side has not closed it meanwhile.
  bool is_quiet() { return transport_.is_quiet(); }

  const ResponseHead& head() const { return head_; }
  std::string_view body() const { return body_; }
  const std::shared_ptr<ClientPool>& pool() const { return pool_; }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  std::chrono::steady_clock::time_point resting_since() const { return resting_since_; }

  std::unexpected<ClientError> failed(ClientError::Stage stage, std::string message) const;

 private:
  std::string_view unread() const { return {buffer_.data(), end_}; }
  boost::asio::awaitable<std::expected<void, ClientError>> enter_tunnel(const Tunnel& tunnel);
  boost::asio::awaitable<std::expected<void, ClientError>> receive_head();
  boost::asio::awaitable<std::expected<void, ClientError>> receive_body();
  boost::asio::awaitable<std::expected<void, ClientError>> receive_chunks();
  boost::asio::awaitable<std::expected<void, ClientError>> receive_until(size_t whole);
  boost::asio::awaitable<std::expected<void, ClientError>> receive_until_closed();
  boost::asio::awaitable<Transport::Error> read_more(size_t wanted);

  const std::shared_ptr<const ClientSettings> settings_;
  std::shared_ptr<ClientPool> pool_;  // while it is used
  Transport transport_;
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point resting_since_;
  bool open_ = false;
  bool timed_out_ = false;
  bool whole_ = false;  // the response was read to its end, and no more
  ResponseHead head_;
  size_t max_body_ = 0;
  bool asked_for_head_ = false;  // the answer has none of the body that it describes
  std::string buffer_;
  size_t end_ = 0;        // of what was read into the buffer
  std::string unpacked_;  // the body, if it came in chunks
  std::string_view body_;
};

}  // namespace tabella::net

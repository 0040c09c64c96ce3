// An HTTP/1.1 client for one server: connections that are kept and used again, TLS, deadlines.
//
// Our own and not libcurl's, for the same reason as the server's parser: a request is one gathered write and,
// mostly, one read, on the thread and in the coroutine of whoever makes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "net/http.h"
#include "net/url.h"

namespace tabella::net {

class AddressRules;
class TlsTrust;

// A proxy that connects us to where we want to go (CONNECT), and what it wants to see for that.
struct Tunnel {
  Url proxy;
  std::string authorization;  // the value of Proxy-Authorization; empty: none
};

struct ClientOptions {
  size_t max_connections = 256;  // on each thread; more requests than that wait for their turn
  size_t max_body = 64u << 20;
  // Servers close what has rested for long: better not to send into that.
  std::chrono::milliseconds idle{15'000};
  std::string ca_file;                    // empty: the system's
  std::shared_ptr<const TlsTrust> trust;  // for clients that share it; null: made from ca_file
  const AddressRules* rules = nullptr;    // where it may connect to; null: anywhere. Must outlive the client
  std::optional<Tunnel> tunnel;
};

struct ClientError {
  // How far it came. From `waiting` on the server may have done what it was asked.
  enum class Stage { connecting, sending, waiting, receiving };
  Stage stage = Stage::connecting;
  bool timed_out = false;
  bool refused = false;  // by the rules for addresses
  std::string message;
};

class ClientConnection;

// A whole response. Lives on the thread that asked; its connection is free for others when it goes.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<ClientConnection> connection);
  ~HttpReply();
  HttpReply(HttpReply&&) noexcept = default;
  HttpReply& operator=(HttpReply&&) = delete;
  HttpReply(const HttpReply&) = delete;
  HttpReply& operator=(const HttpReply&) = delete;

  int status() const;
  std::string_view body() const;
  // The first header of that name; empty if there is none.
  std::string_view header(std::string_view name) const;
  const HttpHeaders& headers() const;

 private:
  std::shared_ptr<ClientConnection> connection_;
};

// Thread-safe: each io_context that asks has its own connections, which end with it or with the client.
class HttpClient {
 public:
  // Throws std::runtime_error with a sentence for the user if the certificates cannot be read.
  HttpClient(Url server, ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const Url& server() const;

  // `head` is complete, its empty line included; both must stay where they are until this returns. May be
  // cancelled: the connection is then not used again. The answer may be as large as the options say, or as
  // `max_body` where that is less.
  boost::asio::awaitable<std::expected<HttpReply, ClientError>> send(
      std::string_view head, std::string_view body, std::chrono::steady_clock::time_point deadline,
      size_t max_body = std::numeric_limits<size_t>::max());

  struct Identity;  // client.cpp's

 private:
  std::shared_ptr<const Identity> identity_;
};

}  // namespace tabella::net

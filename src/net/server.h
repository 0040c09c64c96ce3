// An HTTP/1.1 server: keep-alive, pipelining, chunked bodies, 100-continue, TLS, and limits on all that a
// stranger can send. What the requests mean is the handler's business.
//
// The parser is our own and not Beast's: on the hot path a request is one read, one pass over the head
// without copying or allocating per header, and one gathered write.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "net/http.h"
#include "net/limits.h"
#include "net/threads.h"
#include "net/transport.h"

namespace tabella::net {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::optional<TlsFiles> tls;
  size_t max_body = 16u << 20;
  // How large the body of such a request may be, where that depends on what it is for; its head is known.
  std::function<size_t(const HttpRequest&)> body_limit = {};
  size_t max_connections = 20'000;
  // Beyond, large requests and answers become 503. Nothing: limits of its own.
  Limits* limits = nullptr;
  std::chrono::seconds idle_timeout{120};
  std::chrono::seconds head_timeout{20};
  std::chrono::seconds body_timeout{60};   // without progress
  std::chrono::seconds write_timeout{60};  // without progress
};

// Called on the connection's thread, one request at a time for each connection. Must not throw.
using Handler = std::function<boost::asio::awaitable<void>(const HttpRequest&, HttpResponse&)>;

class HttpServer {
 public:
  // Listens at once. Throws std::runtime_error with a sentence for the user if it cannot.
  HttpServer(IoThreads& threads, ServerOptions options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

  // Takes no more connections, lets requests under way finish for up to `grace`, then closes the rest.
  void stop(std::chrono::milliseconds grace);

  struct Impl;  // server.cpp's

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::net

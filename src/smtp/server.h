// An SMTP server on a port: a Session for each connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "net/listener.h"
#include "smtp/session.h"

namespace tabella::smtp {

struct ServerOptions {
  net::ListenOptions listen;
  SessionOptions session;
  bool tls_from_the_start = false;  // as on port 465
};

// How fast a session's line is to seem, in bytes a second; nothing: as fast as it is.
using LinkSpeed = std::optional<double>;

class Server {
 public:
  struct Accepted {
    std::unique_ptr<Host> host;
    LinkSpeed speed;
  };
  // Called for each connection, on its thread.
  using Accept = std::function<Accepted()>;

  // `identity` null: no TLS. Throws std::runtime_error with a sentence for the user.
  Server(net::IoThreads& threads, ServerOptions options, const net::TlsIdentity* identity, Accept accept);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  size_t connections() const;
  void stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::smtp

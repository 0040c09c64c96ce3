// What the process tells about itself over HTTP: /metrics and /healthz.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "engine/engine.h"
#include "net/http.h"
#include "wire/door.h"

namespace tabella::app {

// Borrows both. Thread-safe.
class HttpDoor {
 public:
  HttpDoor(const engine::Engine& store, const wire::Door& dynamodb) : store_(store), dynamodb_(dynamodb) {}

  boost::asio::awaitable<void> handle(const net::HttpRequest& request, net::HttpResponse& response);

 private:
  const engine::Engine& store_;
  const wire::Door& dynamodb_;
};

}  // namespace tabella::app

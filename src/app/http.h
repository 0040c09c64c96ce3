// What the process tells about itself over HTTP: /metrics and /healthz.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/metrics.h"
#include "net/http.h"

namespace tabella::app {

// Thread-safe, if what it asks is.
class HttpDoor {
 public:
  using WriteMetrics = std::function<void(metrics::Exposition&)>;
  // What ails the process; empty: nothing.
  using Ailment = std::function<boost::asio::awaitable<std::string>()>;

  HttpDoor(WriteMetrics write_metrics, Ailment ailment)
      : write_metrics_(std::move(write_metrics)), ailment_(std::move(ailment)) {}

  boost::asio::awaitable<void> handle(const net::HttpRequest& request, net::HttpResponse& response);

 private:
  const WriteMetrics write_metrics_;
  const Ailment ailment_;
};

}  // namespace tabella::app

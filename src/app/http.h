// All that is served over HTTP: what the process tells about itself (/metrics, /healthz), and mail. Behind a
// login, if there is a file with users.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/metrics.h"
#include "base/passwords.h"
#include "net/http.h"
#include "net/known_hosts.h"

namespace tabella::app {

// Thread-safe, if what it asks is.
class HttpDoor {
 public:
  using WriteMetrics = std::function<void(metrics::Exposition&)>;
  // What ails the process; empty: nothing.
  using Ailment = std::function<boost::asio::awaitable<std::string>()>;

  // Everything else.
  using Rest = std::function<boost::asio::awaitable<void>(const net::HttpRequest&, net::HttpResponse&)>;

  struct Guard {
    std::string auth_file;  // empty: everybody may
    net::KnownHosts hosts;
  };

  // Throws std::runtime_error with a sentence for the user.
  HttpDoor(WriteMetrics write_metrics, Ailment ailment, Rest rest, Guard guard);

  boost::asio::awaitable<void> handle(const net::HttpRequest& request, net::HttpResponse& response);

 private:
  enum class Entry { allowed, refused, busy };  // busy: too many passwords are being checked
  boost::asio::awaitable<Entry> may_enter(const net::HttpRequest& request);

  const WriteMetrics write_metrics_;
  const Ailment ailment_;
  const Rest rest_;
  const Guard guard_;
  std::optional<Passwords> passwords_;
  boost::asio::thread_pool slow_{1};  // for passwords that take long to check
};

}  // namespace tabella::app

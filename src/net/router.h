// Which handler a request is for, and whether it may be made at all: hosts, origins, credentials, scopes and
// sizes are looked at here, before any handler sees a request. docs/architecture.md has the order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/call.h"
#include "net/http.h"
#include "net/known_hosts.h"

namespace tabella::net {

// Scopes that are none of a system's.
inline constexpr std::string_view kAnybody = "";  // needs no credentials

struct Parameter {
  std::string name;
  std::string help;
};

struct Route {
  std::string method;
  std::string path;   // "/journal/{journal}/events"
  std::string scope;  // "journal:read"
  std::string summary;
  std::vector<Parameter> query = {};
  std::string body = {};  // what is to be sent, as an example; empty: nothing
  std::string answer = "application/json";
  size_t max_body = 1u << 20;

  std::function<boost::asio::awaitable<void>(Call&)> handler = {};
};

// Why somebody does not come in.
struct Refusal {
  int status = 401;  // 401, 403 or 503
  std::string message;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Who may come in. Asked once for each request that is not for anybody.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual boost::asio::awaitable<std::variant<Caller, Refusal>> admit(const HttpRequest& request) = 0;
};

class Router {
 public:
  struct Options {
    std::string web_path;  // what all paths begin with; empty: nothing
    std::string cors_origin;
    KnownHosts hosts;
  };
  Router(Options options, Gate& gate);

  // Before the first request.
  void add(Route route);
  std::span<const Route> routes() const { return routes_; }

  // Thread-safe.
  boost::asio::awaitable<void> handle(const HttpRequest& request, HttpResponse& response) const;

 private:
  const Options options_;
  Gate& gate_;
  std::vector<Route> routes_;
};

// The routes as an OpenAPI 3.1 document.
std::string openapi(std::span<const Route> routes, std::string_view version);

}  // namespace tabella::net

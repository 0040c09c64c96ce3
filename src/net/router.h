// Which handler a request is for, and whether it may be made at all. Hosts, credentials, origins, scopes and
// sizes are looked at here, in this order, before any handler sees a request; docs/architecture.md, "The way
// of a request", has the whole of it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/metrics.h"
#include "net/call.h"
#include "net/http.h"
#include "net/known_hosts.h"

namespace tabella::net {

// The scope of routes that need no credentials.
inline constexpr const char* kAnybody = "anybody";

struct Parameter {
  std::string name;
  std::string help;
};

struct Route {
  std::string method;
  std::string path;     // "/journal/{journal}/events"
  std::string scope;    // "journal:read"
  std::string summary;  // what it does, in one line
  std::function<boost::asio::awaitable<void>(Call&)> handler = {};

  std::vector<Parameter> query = {};
  std::string body = {};  // what is to be sent, as an example; empty: nothing
  bool body_is_optional = false;
  std::string answer = "application/json";
  size_t max_body = 1u << 20;
  bool at_root = false;  // also without --web-path before it
  // It has credentials of its own beside those of the gate, each one header or several: the handler decides,
  // also of who was refused (Call::not_admitted), and of who lacks the scope.
  std::vector<std::vector<std::string>> own_credentials = {};
};

// Who may come in. Asked once for each request that is not for anybody. Thread-safe.
class Gate {
 public:
  Gate() = default;
  virtual ~Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  virtual boost::asio::awaitable<std::variant<Caller, Refusal>> admit(const HttpRequest& request) = 0;
};

class Router {
 public:
  struct Options {
    std::string web_path = {};     // what all paths begin with; empty: nothing
    std::string cors_origin = {};  // whose pages may call; empty: only our own
    KnownHosts hosts = {};
  };
  // Without a gate everybody may come in.
  explicit Router(Options options, Gate* gate = nullptr);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Before the first request. Throws std::logic_error if the route is there already, or says too little.
  void add(Route route);
  std::vector<const Route*> routes() const;  // as they were added

  // These three are thread-safe.
  boost::asio::awaitable<void> handle(const HttpRequest& request, HttpResponse& response);
  // How large the body of such a request may be; its head is known, and no more.
  size_t body_limit(const HttpRequest& request) const;
  void write_metrics(metrics::Exposition& out) const;

 private:
  struct Entry;
  struct Node;
  struct Match;

  // The path behind --web-path; nothing if it is somewhere else.
  std::string_view path_of(std::string_view target, bool& at_root) const;
  static const Node* walk(const Node& node, std::span<const std::string> segments,
                          std::vector<std::string>& captured);
  Match find(const std::vector<std::string>& segments) const;
  static bool is_for_any_host(const Entry* entry);
  boost::asio::awaitable<bool> admit(Call& call, const Entry* entry);
  boost::asio::awaitable<void> dispatch(Call& call, const Match& match, bool at_root);
  bool may_call(Call& call) const;
  void add_cors(Call& call, const Match& match) const;
  boost::asio::awaitable<void> run(Call& call, Entry& entry);

  const Options options_;
  Gate* const gate_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::unique_ptr<Node> root_;
};

}  // namespace tabella::net

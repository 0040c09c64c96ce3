// The HTTP port: the routes of all systems behind one router, and what belongs to the process itself:
// /metrics, /healthz, /openapi.json, /login.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/gate.h"
#include "access/password_check.h"
#include "access/sessions.h"
#include "access/tokens.h"
#include "app/open_store.h"
#include "app/server_options.h"
#include "base/passwords.h"
#include "house/system.h"
#include "net/limits.h"
#include "net/router.h"
#include "net/server.h"

namespace tabella::app {

// Whether only this machine can reach it.
bool is_loopback(const Address& address);
// A server that only this machine can reach is called by this machine's names; for another the user answers.
net::KnownHosts hosts_of(const ServeOptions& options, const Address& address);
// The table of tokens and sessions.
std::string access_table(const std::string& prefix);

// Borrows all it is given.
// Where HTTP is served, with --web-path; empty: nowhere.
std::string web_url(const ServeOptions& options);

class HttpPort {
 public:
  using WriteMetrics = std::function<void(metrics::Exposition&)>;

  // Throws std::runtime_error with a sentence for the user.
  HttpPort(const ServeOptions& options, OpenStore& store, const Clock& clock, const house::Systems& systems,
           WriteMetrics write_metrics);

  net::Router& router() { return router_; }
  // Begins to serve, if it is asked to. Once the systems are started.
  void listen(net::IoThreads& threads, net::Limits& limits);
  void stop(std::chrono::milliseconds grace);
  // Where it serves, and whom it lets in.
  std::vector<std::string> announce(net::IoThreads& threads);

 private:
  // Those of --auth-file.
  struct People {
    People(const std::string& file, store::Store& store, const Clock& clock, std::string table)
        : passwords(Passwords::read(file)),
          check(passwords),
          sessions(store, clock, passwords, std::move(table)) {}
    Passwords passwords;
    access::PasswordCheck check;
    access::Sessions sessions;
  };

  std::optional<access::Users> users();
  void add_own_routes(const house::Systems& systems, WriteMetrics write_metrics);

  const ServeOptions& options_;
  OpenStore& store_;
  access::Tokens tokens_;
  const std::unique_ptr<People> people_;  // null: there are none
  access::AccessGate gate_;
  net::Router router_;
  std::optional<net::HttpServer> server_;
};

}  // namespace tabella::app

// Which way mail for a domain goes.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "smtp/connection.h"

namespace tabella::outbox {

enum class Mode {
  capture,  // into our own mail
  relay,    // to a server that takes it from there
  direct,   // to the servers of its domain
};

struct Route {
  Mode mode = Mode::capture;
  smtp::Destination relay = {};
};

// smtp://user:password@host:port, smtps://…; ?tls=required|opportunistic|off, ?verify=no. Without tls= it is
// opportunistic, and required where there is a user: a password is not for whoever keeps TLS from being
// offered. What a URL cannot have in a password is percent-encoded. A sentence if it is none, without its
// password.
std::expected<smtp::Destination, std::string> parse_relay(std::string_view url);

// Immutable once it is filled, so thread-safe.
class Routes {
 public:
  Route otherwise;

  // "example.com=capture", "example.com=direct", "example.com=smtp://…", "*.example.com=…".
  std::expected<void, std::string> add(std::string_view text);
  const Route& find(const std::string& domain) const;
  bool any(Mode mode) const;

 private:
  std::map<std::string, Route> by_domain_;  // ".example.com": what is under it
};

}  // namespace tabella::outbox

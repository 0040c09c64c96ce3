// http://host:port/path and https://…
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tabella::net {

struct Url {
  bool tls = false;
  std::string host;  // in lower case; an IPv6 address without its brackets
  uint16_t port = 80;
  std::string path = "/";  // with the query, if there is one

  // The Host header: the port is left out where it is the usual one.
  std::string authority() const;
  std::string host_and_port() const;
  // scheme, host and port: what web pages call an origin.
  std::string origin() const;
};

// Labels of letters, digits, '-' and '_' between dots; a dot may be the last.
bool is_host_name(std::string_view text);

// host, host:port, [address] or [address]:port; the port stays what it is where none is given. False if it
// is none of them.
bool read_authority(std::string_view text, std::string& host, uint16_t& port);

// A sentence if `text` is no such URL; it repeats neither a password nor a query. What comes behind a # is
// left out, and nobody may be named before an @.
std::expected<Url, std::string> parse_url(std::string_view text);

// What `reference` means where `base` was read (RFC 3986, 5.2): another URL, or //host, /path, path or
// ?query.
std::expected<Url, std::string> resolve_url(const Url& base, std::string_view reference);

}  // namespace tabella::net

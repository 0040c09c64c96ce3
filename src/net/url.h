// http://host:port/path and https://…
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tabella::net {

struct Url {
  bool tls = false;
  std::string host;
  uint16_t port = 80;
  std::string path = "/";  // with the query, if there is one

  // The Host header: the port is left out where it is the usual one.
  std::string authority() const;
};

// A sentence if `text` is no such URL.
std::expected<Url, std::string> parse_url(std::string_view text);

}  // namespace tabella::net

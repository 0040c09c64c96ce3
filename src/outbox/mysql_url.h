// mysql://user:password@host:port/database?option=value: where the MySQL backend's tables are.
//
// Whatever has a meaning in a URL ('@', ':', '/', '%') is written as %40, %3A, %2F, %25 in a name or
// password. Options: socket=/path (a Unix socket instead of host and port); tls=off, the default, required
// (encrypted, whoever answers) or verify (and the server's certificate is checked); ca=/path, what it is
// checked against instead of the system's certificates.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tabella::outbox {

struct MysqlUrl {
  enum class Tls { off, required, verify };

  std::string host;  // an IPv6 address without its brackets
  uint16_t port = 3306;
  std::string socket = {};  // empty: host and port
  std::string user = {};
  std::string password = {};
  std::string database = {};
  Tls tls = Tls::off;
  std::string ca_file = {};

  // host:port/database, for messages: it names neither user nor password.
  std::string shown() const;
};

// A sentence if it cannot be read, which repeats no part of it that may hold the password.
std::expected<MysqlUrl, std::string> parse_mysql_url(std::string_view text);

}  // namespace tabella::outbox

#include "outbox/mysql_url.h"

#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "net/target.h"
#include "net/url.h"

namespace tabella::outbox {
namespace {

constexpr std::string_view kMysqlScheme = "mysql://";

std::unexpected<std::string> wrong_url(std::string_view why) {
  return std::unexpected(
      fmt::format("the address of MySQL is not like mysql://user:password@host:3306/database: {}", why));
}

// A name with a NUL in it would be another one to the client library, which reads C strings.
std::optional<std::string> decoded_part(std::string_view text) {
  auto part = net::percent_decode(text, false);
  if (part && part->find('\0') != std::string::npos) return std::nullopt;
  return part;
}

bool read_user(std::string_view text, MysqlUrl& url) {
  const auto colon = std::min(text.find(':'), text.size());
  auto user = decoded_part(text.substr(0, colon));
  auto password = decoded_part(text.substr(std::min(colon + 1, text.size())));
  if (!user || !password) return false;
  url.user = std::move(*user);
  url.password = std::move(*password);
  return true;
}

std::expected<void, std::string> read_mysql_option(std::string_view name, std::string value, MysqlUrl& url) {
  if (name == "socket" || name == "ca") {
    if (!value.starts_with('/')) return wrong_url(fmt::format("{} is no absolute path", name));
    (name == "socket" ? url.socket : url.ca_file) = std::move(value);
  } else if (name == "tls") {
    if (value == "off")
      url.tls = MysqlUrl::Tls::off;
    else if (value == "required")
      url.tls = MysqlUrl::Tls::required;
    else if (value == "verify")
      url.tls = MysqlUrl::Tls::verify;
    else
      return wrong_url("tls is off, required or verify");
  } else {
    return wrong_url("its options are socket, tls and ca");
  }
  return {};
}

std::expected<void, std::string> read_mysql_options(std::string_view query, MysqlUrl& url) {
  for (const auto pair : split(query, '&')) {
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    auto value = decoded_part(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return wrong_url("an option is badly encoded");
    if (auto read = read_mysql_option(pair.substr(0, equals), std::move(*value), url); !read) return read;
  }
  return {};
}

}  // namespace

std::string MysqlUrl::shown() const {
  if (!socket.empty()) return fmt::format("{}/{}", socket, database);
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}/{}", bracketed ? "[" : "", host, bracketed ? "]" : "", port, database);
}

std::expected<MysqlUrl, std::string> parse_mysql_url(std::string_view text) {
  if (!lower(text.substr(0, kMysqlScheme.size())).starts_with(kMysqlScheme))
    return wrong_url("it does not begin with mysql://");
  text.remove_prefix(kMysqlScheme.size());
  MysqlUrl url;
  const auto question = std::min(text.find('?'), text.size());
  const auto query = text.substr(std::min(question + 1, text.size()));
  text = text.substr(0, question);

  const auto slash = std::min(text.find('/'), text.size());
  const auto authority = text.substr(0, slash);
  auto database = decoded_part(text.substr(std::min(slash + 1, text.size())));
  // Taken as a database's, this could be the end of a password with a slash in it.
  if (!database || database->find_first_of("/@") != std::string::npos)
    return wrong_url("the name of its database cannot be read");
  if (database->empty()) return wrong_url("it names no database");
  url.database = std::move(*database);

  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return wrong_url("it names no user");
  if (!read_user(authority.substr(0, at), url)) return wrong_url("user or password is badly encoded");
  if (url.user.empty()) return wrong_url("it names no user");
  // With a socket there need not be a host.
  const auto server = authority.substr(at + 1);
  if (!server.empty() && !net::read_authority(server, url.host, url.port))
    return wrong_url("its host or port cannot be read");
  if (auto read = read_mysql_options(query, url); !read) return std::unexpected(std::move(read).error());
  if (url.host.empty() && url.socket.empty()) return wrong_url("it names neither a host nor a socket");
  return url;
}

}  // namespace tabella::outbox

#include "outbox/mariadb.h"

#include <unistd.h>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace tabella::test {
namespace {

// A server that is started as root wants to be told that this is meant.
std::string as_this_user() { return geteuid() == 0 ? " --user=root" : ""; }

}  // namespace

Mariadb::Mariadb() {
  const auto install = fmt::format(
      "mariadb-install-db --no-defaults --datadir={0}/data --skip-test-db{1} "
      "--auth-root-authentication-method=normal >{0}/install.log 2>&1",
      folder_.path().string(), as_this_user());
  if (std::system(install.c_str()) != 0) throw std::runtime_error("mariadb-install-db failed");
  start();
}

void Mariadb::start() {
  const auto command = fmt::format(
      "PATH=$PATH:/usr/sbin exec mariadbd --no-defaults --datadir={0}/data --socket={0}/socket --port={1} "
      "--bind-address=127.0.0.1 --pid-file={0}/pid --innodb-flush-log-at-trx-commit=1{2} 2>&1",
      folder_.path().string(), port_, as_this_user());
  server_ = std::make_unique<Process>(std::vector<std::string>{"sh", "-c", command}, "ready for connections");
}

outbox::MysqlUrl Mariadb::url(std::string database) const {
  return {.host = "127.0.0.1", .port = port_, .user = "root", .database = std::move(database)};
}

outbox::MysqlUrl Mariadb::socket_url(std::string database) const {
  return {.socket = folder_.path() / "socket", .user = "root", .database = std::move(database)};
}

outbox::MysqlConnection Mariadb::connect(std::string database) const {
  auto connection = outbox::MysqlConnection::open(socket_url(std::move(database)));
  if (!connection) throw std::runtime_error(connection.error().message);
  return std::move(*connection);
}

std::string Mariadb::make_database() {
  auto name = fmt::format("outbox_{}", ++databases_);
  auto connection = connect("mysql");
  query(connection, fmt::format("CREATE DATABASE {}", name));
  return name;
}

Mariadb& Mariadb::shared() {
  static Mariadb server;
  return server;
}

outbox::MysqlRows query(outbox::MysqlConnection& connection, std::string_view statement,
                        const std::vector<outbox::MysqlValue>& values) {
  auto rows = connection.execute(statement, values);
  if (!rows) throw std::runtime_error(rows.error().message);
  return std::move(*rows);
}

}  // namespace tabella::test

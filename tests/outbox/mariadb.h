// A MariaDB server of a test's own, in a temporary folder, on a port and a Unix socket of its own.
#pragma once

#include <memory>
#include <string>

#include "outbox/mysql_connection.h"
#include "outbox/mysql_url.h"
#include "support/folder.h"
#include "support/process.h"

namespace tabella::test {

class Mariadb {
 public:
  Mariadb();

  // What has been acknowledged is on disk: a killed one comes back with it.
  void start();
  void kill() { server_.reset(); }

  // By TCP, as root, who has no password.
  outbox::MysqlUrl url(std::string database) const;
  outbox::MysqlUrl socket_url(std::string database) const;
  // A connection as another program has one; throws if there is none.
  outbox::MysqlConnection connect(std::string database) const;
  // An empty one.
  std::string make_database();

  // The one that all tests of a process share.
  static Mariadb& shared();

 private:
  Folder folder_;
  const uint16_t port_ = free_port();
  int databases_ = 0;
  std::unique_ptr<Process> server_;
};

// Runs it, and throws what the server says against it.
outbox::MysqlRows query(outbox::MysqlConnection& connection, std::string_view statement,
                        const std::vector<outbox::MysqlValue>& values = {});

}  // namespace tabella::test

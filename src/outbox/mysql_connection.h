// One connection to a MySQL or MariaDB server, by the client library that only mysql_connection.cpp knows.
// Every call blocks, so it is for the threads of a MysqlPool. Used by one thread at a time.
//
// A session of ours is set up so:
// - UTC and utf8mb4, whatever the server's defaults are, and strict: a value that is too long is refused, not
//   cut.
// - READ COMMITTED. Every statement of ours finds its rows by a primary key, or takes what it gets; the gap
//   locks of REPEATABLE READ would add nothing to that but deadlocks with those who insert, and each read
//   within a transaction has to see what others have committed before it.
// - A lock is waited for 10 seconds, less than the 30 that an answer may take: it is the server that gives up
//   (1205), and we are told. A session idle for 5 minutes is ended by the server, so that one whose client
//   vanished with a transaction open does not hold its locks for the 8 hours that are the default.
// - Affected rows are those that were found (CLIENT_FOUND_ROWS), also where nothing changed in them.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "outbox/mysql_url.h"

namespace tabella::outbox {

struct MysqlError {
  unsigned number = 0;  // the server's (1213) or the client library's (2013)
  std::string sqlstate = {};
  std::string message = {};
  bool lost = false;       // the connection is gone, and with it the answer, if there was one
  bool transient = false;  // worth another try; always so if lost
  bool busy = false;       // it never came to the server: too much is waiting
  bool unsure = false;     // set by MysqlTransaction: it may have been committed all the same
};

template <class T = void>
using MysqlResult = std::expected<T, MysqlError>;

using MysqlValue = std::variant<std::monostate, int64_t, std::string>;  // nothing is NULL
using MysqlRow = std::vector<std::optional<std::string>>;

struct MysqlRows {
  std::vector<MysqlRow> rows;
  uint64_t affected = 0;
  int64_t inserted_id = 0;  // what AUTO_INCREMENT gave, if it did
};

class MysqlConnection {
 public:
  // How long the server keeps a session that does nothing.
  static constexpr std::chrono::seconds kLongestIdle{300};

  static MysqlResult<MysqlConnection> open(const MysqlUrl& url);
  ~MysqlConnection();
  MysqlConnection(MysqlConnection&&) noexcept;
  MysqlConnection& operator=(MysqlConnection&&) noexcept;

  // Runs a statement, prepared once per connection: its text is one of a fixed number, and what varies is a
  // '?' in it.
  MysqlResult<MysqlRows> execute(std::string_view statement, const std::vector<MysqlValue>& values = {});

  MysqlResult<> begin();
  MysqlResult<> commit();
  // One that fails leaves a connection that is broken, so there is nothing to return.
  void rollback();

  // It is of no more use: the connection was lost, or what it would say next is not known.
  bool is_broken() const;

  // Unique among all connections to all servers.
  const std::string& name() const;
  // 1, 2, 3, …
  int64_t next_number();

 private:
  struct Impl;
  explicit MysqlConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::outbox

#include "outbox/mysql_transaction.h"

namespace tabella::outbox {

MysqlResult<> MysqlMark::prepare(MysqlConnection& connection) {
  TABELLA_TRY(connection.execute(R"(
CREATE TABLE IF NOT EXISTS outbox_commits (
    connection CHAR(36) PRIMARY KEY,
    number BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4)"));
  // Of connections that are long gone: whoever lost an answer asked within seconds.
  TABELLA_TRY(connection.execute("DELETE FROM outbox_commits WHERE updated_at < NOW() - INTERVAL 1 DAY"));
  return {};
}

MysqlResult<MysqlMark> MysqlMark::leave(MysqlConnection& connection) {
  const MysqlMark mark{.connection = connection.name(), .number = connection.next_number()};
  TABELLA_TRY(connection.execute(
      "INSERT INTO outbox_commits (connection, number) VALUES (?, ?) ON DUPLICATE KEY UPDATE number = ?",
      {mark.connection, mark.number, mark.number}));
  return mark;
}

MysqlResult<bool> MysqlMark::was_committed(MysqlConnection& by_way_of) const {
  TABELLA_ASSIGN(const auto found, by_way_of.execute("SELECT 1 FROM outbox_commits "
                                                     "WHERE connection = ? AND number = ? FOR UPDATE",
                                                     {connection, number}));
  return !found.rows.empty();
}

}  // namespace tabella::outbox

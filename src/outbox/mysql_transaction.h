// A transaction that is committed exactly once, though the answer to a COMMIT can be lost.
//
// Whether a lost COMMIT took effect cannot be told from the rows that it was about: somebody else may have
// moved the same email to the same state since, with the same reason, and a server that crashed may give the
// number of a history row that never became durable to another. So each transaction leaves a mark of its own:
// in outbox_commits, one row for each connection, it writes the number that the transaction has on its
// connection. Nobody else writes that row, and a connection that lost an answer is never used again; so the
// row has the number if, and only if, the transaction was committed. That also holds across a restart, or a
// failover to a replica, that forgot the transaction.
//
// The mark is read with a lock (FOR UPDATE): the server may not have noticed yet that its client is gone, or
// be about to commit, and holds the lock on the row until either is decided.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "outbox/mysql_connection.h"

namespace tabella::outbox {

struct MysqlMark {
  std::string connection;
  int64_t number = 0;

  static MysqlResult<> prepare(MysqlConnection& connection);
  static MysqlResult<MysqlMark> leave(MysqlConnection& connection);
  MysqlResult<bool> was_committed(MysqlConnection& by_way_of) const;
};

// Work for MysqlPool::run, which calls it again where it failed for a passing reason.
template <class Body>
class MysqlTransaction {
 public:
  using Outcome = std::invoke_result_t<Body&, MysqlConnection&>;

  explicit MysqlTransaction(Body body) : body_(std::move(body)) {}

  Outcome operator()(MysqlConnection& connection) {
    auto outcome = attempt(connection);
    if (!outcome) outcome.error().unsure = unanswered_.has_value();
    return outcome;
  }

 private:
  struct Unanswered {
    MysqlMark mark;
    Outcome outcome;
  };

  Outcome attempt(MysqlConnection& connection) {
    if (unanswered_) {
      TABELLA_ASSIGN(const bool committed, unanswered_->mark.was_committed(connection));
      if (committed) return std::move(unanswered_->outcome);
      unanswered_.reset();
    }
    TABELLA_TRY(connection.begin());
    auto outcome = body_(connection);
    if (!outcome || !*outcome) {
      connection.rollback();
      return outcome;
    }
    auto mark = MysqlMark::leave(connection);
    if (!mark) {
      connection.rollback();
      return std::unexpected(std::move(mark).error());
    }
    auto committed = connection.commit();
    if (committed) return outcome;
    if (committed.error().lost)
      unanswered_.emplace(std::move(*mark), std::move(outcome));
    else
      connection.rollback();
    return std::unexpected(std::move(committed).error());
  }

  Body body_;
  std::optional<Unanswered> unanswered_;
};

}  // namespace tabella::outbox

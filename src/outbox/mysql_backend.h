// Emails and their states in MySQL or MariaDB, in the two tables and by the statements of docs/outbox.md,
// which other programs may use beside us. A third table, outbox_commits, is ours (mysql_transaction.h).
//
// Where an email is, is decided by optimistic locking: an update of its row that names the state and, where
// it is known, the version that it was read with, and that touches no row if somebody else was faster.
// Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <unordered_set>

#include "outbox/backend.h"
#include "outbox/mysql_pool.h"

namespace tabella::outbox {

class MysqlBackend final : public Backend {
 public:
  // `store` has our own rows, which the statements of Beside are about.
  MysqlBackend(store::Store& store, MysqlUrl url, MysqlPool::Options options = {});

  // Makes the tables that are missing; to be awaited before anything else.
  store::Async<void> prepare();

  store::Async<bool> create(Email email, Beside beside) override;
  store::Async<std::optional<Email>> move(Email email, State to, std::string reason, Beside beside) override;
  store::Async<std::optional<Email>> find(std::string id) override;
  store::Async<std::vector<Step>> history(std::string id) override;
  store::Async<EmailPage> list(State status, size_t limit, std::string from) override;
  store::Async<std::map<State, int64_t>> counts() override;
  // Nothing: only what is over is ever deleted (clean).
  store::Async<void> keep_until(std::string, std::optional<int64_t>) override { co_return store::Result<>{}; }
  store::Async<bool> remove(std::string id) override;
  store::Async<Changes> changes(std::string position, size_t most) override;

  // Deletes emails that are done with, and that nobody has touched since `before`, at most so many; their
  // ids. MySQL has no time to live.
  store::Async<std::vector<std::string>> clean(TimePoint before, size_t most);

 private:
  // The rows of the history that we wrote last. Thread-safe.
  class OwnSteps {
   public:
    void add(int64_t id);
    bool has(int64_t id) const;

   private:
    static constexpr size_t kMost = 100'000;
    mutable std::mutex mutex_;
    std::unordered_set<int64_t> ids_;  // both guarded by mutex_
    std::deque<int64_t> order_;
  };

  store::Async<void> run_beside(std::vector<store::Statement> statements);

  store::Store& store_;
  OwnSteps own_steps_;
  MysqlPool pool_;
};

}  // namespace tabella::outbox

// What only the MySQL backend has to stand: lost answers, a server that dies, deadlocks, commits out of
// order.
#include <latch>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/commit_proxy.h"
#include "outbox/mariadb.h"
#include "outbox/mysql_backend.h"
#include "support/empty_store.h"
#include "support/run.h"

namespace tabella::outbox {
namespace {

using std::chrono::seconds;
using test::CommitProxy;
using test::Mariadb;
using test::query;
using test::run;

// Remembers the statements that it is asked to run, and what there was of an email at that time.
class WatchingStore final : public test::EmptyStore {
 public:
  store::Async<store::ExecuteTransactionResult> execute_transaction(
      store::ExecuteTransactionRequest request) override {
    for (const auto& statement : request.statements) seen.push_back(statement.text + " at " + state());
    co_return store::ExecuteTransactionResult{};
  }
  std::function<std::string()> state;
  std::vector<std::string> seen;
};

class Mysql : public testing::Test {
 protected:
  explicit Mysql(Mariadb& server = Mariadb::shared())
      : server_(server),
        database_(server.make_database()),
        url_(server.url(database_)),
        backend_(store_, url_) {
    EXPECT_TRUE(run(backend_.prepare()));
  }

  Email created(const std::string& id, State status = State::accepted) {
    EXPECT_TRUE(run(backend_.create({.id = id, .status = status}, {})).value());
    return run(backend_.find(id)).value().value();
  }
  size_t steps(const std::string& id) { return run(backend_.history(id)).value().size(); }
  MysqlConnection connect() { return server_.connect(database_); }
  // The ids of the emails that changes are about.
  static std::multiset<std::string> ids_of(const Changes& changes) {
    std::multiset<std::string> ids;
    for (const auto& change : changes.changes) ids.insert(change.id);
    return ids;
  }

  Mariadb& server_;
  const std::string database_;
  const MysqlUrl url_;
  WatchingStore store_;
  MysqlBackend backend_;
};

// A backend by way of a proxy.
class LostCommit : public Mysql, public testing::WithParamInterface<CommitProxy::Loss> {
 protected:
  LostCommit() { through_.port = proxy_.port(); }

  CommitProxy proxy_{url_.port};
  MysqlUrl through_ = url_;
};

TEST_P(LostCommit, IsMadeExactlyOnceByAMove) {
  MysqlBackend backend(store_, through_);
  auto email = created("one", State::ready);
  for (int round = 0; round < 5; ++round) {
    proxy_.lose_next(GetParam());
    const auto taken = run(backend.move(email, State::processing, "", {})).value();
    EXPECT_TRUE(proxy_.has_lost());
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->version, email.version + 1);
    email = run(backend.move(*taken, State::ready, "again", {})).value().value();
  }
  EXPECT_EQ(email.version, 11);
  EXPECT_EQ(steps("one"), 11u);
}

TEST_P(LostCommit, IsMadeExactlyOnceByCreateAndRemove) {
  MysqlBackend backend(store_, through_);
  proxy_.lose_next(GetParam());
  EXPECT_TRUE(run(backend.create({.id = "one"}, {})).value());
  EXPECT_TRUE(proxy_.has_lost());
  EXPECT_EQ(steps("one"), 1u);
  proxy_.lose_next(GetParam());
  EXPECT_TRUE(run(backend.remove("one")).value());
  EXPECT_FALSE(run(backend.find("one")).value());
}

TEST_P(LostCommit, IsNotTakenForThatOfAnother) {
  // Somebody else makes the same move as soon as ours has been lost, before it is tried again.
  MysqlBackend backend(store_, through_);
  const auto email = created("one", State::ready);
  MysqlPool pool(through_, {});
  bool first = true;
  proxy_.lose_next(GetParam());
  const auto moved = run(pool.transact([&](MysqlConnection& connection) -> MysqlResult<std::optional<bool>> {
    if (!first) EXPECT_TRUE(run(backend_.move(email, State::processing, "", {})).value());
    first = false;
    TABELLA_ASSIGN(const auto updated,
                   connection.execute("UPDATE emails SET status = 'PROCESSING', version = version + 1 "
                                      "WHERE id = 'one' AND status = 'READY'"));
    return updated.affected > 0 ? std::optional(true) : std::nullopt;
  }));
  EXPECT_EQ(moved.value().has_value(), GetParam() == CommitProxy::Loss::answer);
  EXPECT_EQ(run(backend_.find("one")).value()->version, 2);
}

INSTANTIATE_TEST_SUITE_P(Of, LostCommit,
                         testing::Values(CommitProxy::Loss::request, CommitProxy::Loss::answer),
                         [](const auto& parameter) {
                           return parameter.param == CommitProxy::Loss::request ? "request" : "answer";
                         });

TEST_F(Mysql, RepeatsTheVictimOfADeadlock) {
  created("a");
  created("b");
  MysqlPool pool(url_, {});
  std::latch both_hold_one(2);
  std::atomic<int> attempts = 0;
  const auto mover = [&](std::string first, std::string second) {
    const auto done = run(pool.transact([&](MysqlConnection& connection) -> MysqlResult<std::optional<bool>> {
      const auto attempt = ++attempts;
      TABELLA_TRY(connection.execute("UPDATE emails SET reason = ? WHERE id = ?", {first, first}));
      if (attempt <= 2) both_hold_one.arrive_and_wait();
      TABELLA_TRY(connection.execute("UPDATE emails SET reason = ? WHERE id = ?", {first, second}));
      return std::optional(true);
    }));
    EXPECT_TRUE(done.value());
  };
  std::thread other(mover, "b", "a");
  mover("a", "b");
  other.join();
  EXPECT_EQ(attempts, 3);
}

TEST_F(Mysql, FindsWhatIsCommittedOutOfOrder) {
  created("early");
  created("late");
  auto position = run(backend_.changes("", 100)).value().position;
  auto slow = connect();
  auto fast = connect();
  slow.begin().value();
  query(slow, "INSERT INTO email_statuses (email_id, status) VALUES ('early', 'READY')");
  query(fast, "INSERT INTO email_statuses (email_id, status) VALUES ('late', 'READY')");
  auto changes = run(backend_.changes(position, 100)).value();
  EXPECT_EQ(ids_of(changes), std::multiset<std::string>{"late"});
  // Also by way of a position that was taken while it was open.
  const auto meanwhile = run(backend_.changes("", 100)).value().position;
  slow.commit().value();
  EXPECT_EQ(ids_of(run(backend_.changes(meanwhile, 100)).value()), std::multiset<std::string>{"early"});
  changes = run(backend_.changes(changes.position, 100)).value();
  EXPECT_EQ(ids_of(changes), std::multiset<std::string>{"early"});
  EXPECT_TRUE(run(backend_.changes(changes.position, 100)).value().changes.empty());
}

TEST_F(Mysql, SeesAStateThatWasSetWithoutARowInTheHistory) {
  created("one");
  auto position = run(backend_.changes("", 100)).value().position;
  auto foreign = connect();
  // The history knows it as READY, but not since its last change.
  query(foreign,
        "INSERT INTO email_statuses (email_id, status, created_at) VALUES ('one', 'READY', '2020-01-01')");
  position = run(backend_.changes(position, 100)).value().position;
  query(foreign, "UPDATE emails SET status = 'READY', version = version + 1 WHERE id = 'one'");
  const auto changes = run(backend_.changes(position, 100)).value();
  ASSERT_EQ(changes.changes.size(), 1u);
  EXPECT_EQ(changes.changes[0].id, "one");
  EXPECT_EQ(changes.changes[0].status, State::ready);
}

TEST_F(Mysql, KnowsItsOwnMoves) {
  const auto position = run(backend_.changes("", 100)).value().position;
  ASSERT_TRUE(run(backend_.move(created("one"), State::intaking, "", {})).value());
  for (const auto& change : run(backend_.changes(position, 100)).value().changes) EXPECT_TRUE(change.ours);
  MysqlBackend other(store_, url_);
  for (const auto& change : run(other.changes(position, 100)).value().changes) EXPECT_FALSE(change.ours);
}

TEST_F(Mysql, CleansWhatIsDoneWithAndOld) {
  const auto now = std::chrono::system_clock::now();
  auto foreign = connect();
  for (const auto state : kStates) {
    created(fmt::format("new-{}", name_of(state)), state);
    created(fmt::format("old-{}", name_of(state)), state);
  }
  query(foreign, "UPDATE emails SET updated_at = '2020-01-01' WHERE id LIKE 'old-%'");
  std::multiset<std::string> cleaned;
  for (int i = 0; i < 5; ++i)
    for (auto& id : run(backend_.clean(now - seconds(60), 2)).value()) cleaned.insert(std::move(id));
  EXPECT_EQ(cleaned, (std::multiset<std::string>{"old-FAILED", "old-FAILED-ACKNOWLEDGED", "old-INVALID",
                                                 "old-SENT", "old-SENT-ACKNOWLEDGED"}));
  EXPECT_EQ(steps("old-SENT"), 0u);
  EXPECT_EQ(steps("new-SENT"), 1u);
  EXPECT_EQ(steps("old-READY"), 1u);
}

TEST_F(Mysql, RunsWhatBelongsToAMoveBeforeAndAfterIt) {
  const auto email = created("one");
  store_.state = [this] { return std::string(name_of(run(backend_.find("one")).value()->status)); };
  const Beside beside{.before = {{.text = "before"}}, .after = {{.text = "after"}}};
  ASSERT_TRUE(run(backend_.move(email, State::intaking, "", beside)).value());
  EXPECT_EQ(store_.seen, (std::vector<std::string>{"before at ACCEPTED", "after at INTAKING"}));
  EXPECT_FALSE(run(backend_.move(email, State::intaking, "", beside)).value());
  EXPECT_EQ(store_.seen.size(), 3u) << "nothing after a move that was not made";
}

TEST_F(Mysql, TakesReasonsThatAreNoTextOrTooLong) {
  const auto email = created("one");
  const auto moved = run(backend_.move(email, State::intaking, "550 caf\xe9 \xf0\x9f\x92\x8c", {})).value();
  EXPECT_EQ(moved->reason, "550 caf\xef\xbf\xbd \xf0\x9f\x92\x8c");
  EXPECT_EQ(run(backend_.move(*moved, State::invalid, std::string(70'000, 'x'), {})).value()->reason.size(),
            65'535u);
}

TEST_F(Mysql, SaysWhyItCannotBeReached) {
  auto closed = url_;
  closed.port = test::free_port();
  MysqlBackend nowhere(store_, closed);
  const auto unreachable = run(nowhere.find("one"));
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().code, store::ErrorCode::unavailable);
  EXPECT_FALSE(unreachable.error().unsure);

  auto stranger = url_;
  stranger.user = "stranger";
  stranger.password = "secret";
  MysqlBackend refused(store_, stranger);
  const auto begun = std::chrono::steady_clock::now();
  const auto denied = run(refused.find("one"));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, store::ErrorCode::internal);
  EXPECT_EQ(denied.error().message.find("secret"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(1)) << "there is no use in asking again";
}

TEST_F(Mysql, RefusesMoreThanItsQueueHolds) {
  created("one");
  MysqlPool pool(url_, {.connections = 1, .queue = 1});
  std::latch begun(1);
  std::latch end(1);
  std::thread busy([&] {
    EXPECT_TRUE(run(pool.run([&](MysqlConnection&) -> MysqlResult<bool> {
      begun.count_down();
      end.wait();
      return true;
    })));
  });
  begun.wait();
  const auto refused = run(pool.run([](MysqlConnection&) -> MysqlResult<bool> { return true; }));
  end.count_down();
  busy.join();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, store::ErrorCode::unavailable);
}

// One server of its own, since it is killed.
class KilledMysql : public Mysql {
 protected:
  KilledMysql() : Mysql(own()) {}
  static Mariadb& own() {
    static Mariadb server;
    return server;
  }
};

TEST_F(KilledMysql, KeepsWhatItAcknowledgedAndDoesNothingTwice) {
  constexpr int kMovers = 4;
  std::atomic<bool> stopping = false;
  std::atomic<int> acknowledged = 0;
  std::atomic<int> failed = 0;
  const auto find = [&](const std::string& id) {
    while (true)
      if (auto found = run(backend_.find(id))) return found->value();
  };
  const auto mover = [&](const std::string& id) {
    auto email = created(id, State::ready);
    while (!stopping) {
      const auto to = email.status == State::ready ? State::processing : State::ready;
      const auto moved = run(backend_.move(email, to, "", {}));
      if (moved) {
        ASSERT_TRUE(*moved) << "nobody else moves it";
        ASSERT_EQ((*moved)->version, email.version + 1);
        email = **moved;
        ++acknowledged;
        continue;
      }
      ++failed;
      const auto now = find(id);
      if (now.version != email.version) {
        EXPECT_TRUE(moved.error().unsure) << moved.error().message;
        EXPECT_EQ(now.version, email.version + 1);
      }
      email = now;
    }
    EXPECT_EQ(find(id).version, email.version) << "the last one acknowledged is there";
    EXPECT_EQ(steps(id), static_cast<size_t>(email.version)) << "each move once";
  };
  std::vector<std::thread> movers;
  for (int i = 0; i < kMovers; ++i) movers.emplace_back(mover, fmt::format("email-{}", i));
  for (int round = 0; round < 4; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server_.kill();
    server_.start();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stopping = true;
  for (auto& thread : movers) thread.join();
  EXPECT_GT(acknowledged, 100);
  RecordProperty("acknowledged", acknowledged);
  RecordProperty("failed", failed);
}

}  // namespace
}  // namespace tabella::outbox

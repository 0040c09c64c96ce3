// The contract of outbox::Backend, written once and run on each: BACKEND_ON is mysql or store.
#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "outbox/subject.h"
#include "support/run.h"

namespace tabella::outbox {
namespace {

using std::chrono::seconds;
using test::run;

struct Kind {
  std::string name;
  std::unique_ptr<BackendSubject> (*make)();
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> kinds() {
  std::vector<Kind> all = {{"mysql", make_mysql_subject}, {"store", make_store_subject}};
  const auto wanted = environment_variable("BACKEND_ON");
  std::erase_if(all, [&](const auto& kind) { return kind.name != (wanted.empty() ? "mysql" : wanted); });
  if (all.empty()) throw std::runtime_error("BACKEND_ON: there is no " + wanted);
  return all;
}

class BackendContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { subject_ = GetParam().make(); }

  BackendSubject& subject() { return *subject_; }
  Backend& backend() { return subject_->backend(); }

  Email created(const std::string& id, State status = State::accepted) {
    EXPECT_TRUE(run(backend().create({.id = id, .status = status})).value());
    return found(id);
  }
  Email found(const std::string& id) { return run(backend().find(id)).value().value(); }
  std::optional<Email> moved(Email email, State to, std::string reason = {}) {
    return run(backend().move(std::move(email), to, std::move(reason))).value();
  }
  // "ACCEPTED,INTAKING(why)"
  std::string history(const std::string& id) {
    std::string out;
    for (const auto& step : run(backend().history(id)).value()) {
      out.append(out.empty() ? "" : ",").append(name_of(step.status));
      if (!step.reason.empty()) out.append("(").append(step.reason).append(")");
    }
    return out;
  }
  // All pages.
  std::multiset<std::string> listed(State status, size_t limit = 25) {
    std::multiset<std::string> ids;
    std::string from;
    do {
      auto page = run(backend().list(status, limit, from)).value();
      EXPECT_LE(page.emails.size(), limit);
      for (const auto& email : page.emails) {
        EXPECT_EQ(email.status, status);
        ids.insert(email.id);
      }
      from = page.next;
    } while (!from.empty());
    return ids;
  }
  // Reads on until a change is there, a few seconds at most; how the changes of others were until then.
  std::vector<Change> changes_until(std::string& position, const std::string& id, State status) {
    std::vector<Change> all;
    const auto deadline = std::chrono::steady_clock::now() + seconds(15);
    while (std::chrono::steady_clock::now() < deadline) {
      auto changes = run(backend().changes(position, 100)).value();
      position = changes.position;
      bool there = false;
      for (auto& change : changes.changes) {
        there = there || (change.id == id && change.status == status);
        if (!change.ours) all.push_back(std::move(change));
      }
      if (there) return all;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "no change of " << id << " to " << name_of(status);
    return all;
  }

 private:
  std::unique_ptr<BackendSubject> subject_;
};

TEST_P(BackendContract, HasWhatWasCreated) {
  const Email email{.id = "one",
                    .status = State::ready,
                    .eml_file_path = "/eml/one.eml",
                    .payload_file_path = "/payload/one.json",
                    .reason = "straight in"};
  const auto before = std::chrono::floor<seconds>(std::chrono::system_clock::now()) - seconds(1);
  EXPECT_TRUE(run(backend().create(email)).value());
  const auto there = found("one");
  EXPECT_EQ(there.id, "one");
  EXPECT_EQ(there.status, State::ready);
  EXPECT_EQ(there.eml_file_path, "/eml/one.eml");
  EXPECT_EQ(there.payload_file_path, "/payload/one.json");
  EXPECT_EQ(there.reason, "straight in");
  EXPECT_GE(there.updated_at, before);
  EXPECT_EQ(history("one"), "READY(straight in)");
  EXPECT_FALSE(run(backend().find("two")).value());
  EXPECT_EQ(history("two"), "");
}

TEST_P(BackendContract, RefusesToCreateTwice) {
  EXPECT_TRUE(run(backend().create({.id = "one", .payload_file_path = "/first"})).value());
  EXPECT_FALSE(
      run(backend().create({.id = "one", .status = State::ready, .payload_file_path = "/second"})).value());
  EXPECT_EQ(found("one").payload_file_path, "/first");
  EXPECT_EQ(found("one").status, State::accepted);
  EXPECT_EQ(history("one"), "ACCEPTED");
}

TEST_P(BackendContract, MovesAlongEachPathOfTheFlow) {
  using enum State;
  const std::vector<std::vector<State>> paths = {
      {accepted, intaking, ready, processing, sent, calling_sent_callback, sent_acknowledged},
      {accepted, intaking, ready, processing, failed, calling_failed_callback, failed_acknowledged},
      {accepted, intaking, invalid}};
  for (size_t i = 0; i < paths.size(); ++i) {
    auto email = created(fmt::format("email-{}", i));
    std::string expected = "ACCEPTED";
    for (const auto to : std::vector(paths[i].begin() + 1, paths[i].end())) {
      const auto next = moved(email, to);
      ASSERT_TRUE(next) << name_of(to);
      EXPECT_EQ(next->status, to);
      EXPECT_EQ(found(email.id).status, to);
      EXPECT_EQ(next->version, found(email.id).version);
      expected.append(",").append(name_of(to));
      email = *next;
    }
    EXPECT_EQ(history(email.id), expected);
  }
}

TEST_P(BackendContract, DoesNotMoveWhatIsElsewhere) {
  const auto email = created("one");
  ASSERT_TRUE(moved(email, State::intaking));
  EXPECT_FALSE(moved(email, State::intaking)) << "it is in INTAKING";
  EXPECT_FALSE(moved({.id = "two"}, State::intaking)) << "there is no such email";
  EXPECT_EQ(history("one"), "ACCEPTED,INTAKING");
  EXPECT_FALSE(run(backend().find("two")).value());
}

TEST_P(BackendContract, KeepsPathsAndReasons) {
  auto email = created("one");
  email.eml_file_path = "/eml/one.eml";
  const auto taken = moved(email, State::intaking, "läuft – 💌").value();
  EXPECT_EQ(taken.eml_file_path, "/eml/one.eml");
  EXPECT_EQ(taken.reason, "läuft – 💌");
  const auto ready = moved(taken, State::ready, std::string(3000, 'r')).value();
  EXPECT_EQ(ready.eml_file_path, "/eml/one.eml");
  EXPECT_EQ(found("one").reason, std::string(3000, 'r'));
  EXPECT_EQ(moved(ready, State::processing)->reason, "");
  EXPECT_EQ(history("one"),
            fmt::format("ACCEPTED,INTAKING(läuft – 💌),READY({}),PROCESSING", std::string(3000, 'r')));
}

TEST_P(BackendContract, EntersReadyAndProcessingAgain) {
  auto email = created("one", State::ready);
  for (int round = 0; round < 3; ++round) {
    email = moved(email, State::processing).value();
    email = moved(email, State::ready, fmt::format("454 later {}", round)).value();
    EXPECT_EQ(found("one").status, State::ready);
    EXPECT_EQ(found("one").reason, fmt::format("454 later {}", round));
  }
  email = moved(email, State::processing).value();
  ASSERT_TRUE(moved(email, State::sent));
  EXPECT_EQ(found("one").status, State::sent);
  EXPECT_TRUE(history("one").ends_with("SENT"));
}

TEST_P(BackendContract, LetsOneOfTwoMoversWin) {
  constexpr int kEmails = 40;
  for (int i = 0; i < kEmails; ++i) created(fmt::format("email-{}", i), State::ready);
  std::atomic<int> won = 0;
  const auto mover = [&](Backend& backend) {
    for (int i = 0; i < kEmails; ++i) {
      const Email email{.id = fmt::format("email-{}", i), .status = State::ready};
      if (run(backend.move(email, State::processing, "")).value()) ++won;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(mover, std::ref(i % 2 == 0 ? subject().backend() : subject().other()));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(won, kEmails);
  for (int i = 0; i < kEmails; ++i) EXPECT_EQ(history(fmt::format("email-{}", i)), "READY,PROCESSING");
}

TEST_P(BackendContract, ListsSixtyEmailsTwentyFiveAtATime) {
  std::multiset<std::string> ids;
  for (int i = 0; i < 60; ++i) {
    created(fmt::format("email-{}", i), State::ready);
    ids.insert(fmt::format("email-{}", i));
  }
  created("elsewhere");
  EXPECT_EQ(listed(State::ready), ids);
  EXPECT_EQ(listed(State::accepted), std::multiset<std::string>{"elsewhere"});
  EXPECT_TRUE(listed(State::sent).empty());
}

TEST_P(BackendContract, CountsTheEmailsOfEachState) {
  for (int i = 0; i < 3; ++i) created(fmt::format("ready-{}", i), State::ready);
  moved(created("taken", State::ready), State::processing);
  // They may come a moment later.
  auto counts = run(backend().counts()).value();
  for (int tries = 0; tries < 200 && counts[State::processing] == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    counts = run(backend().counts()).value();
  }
  EXPECT_EQ(counts[State::ready], 3);
  EXPECT_EQ(counts[State::processing], 1);
  EXPECT_EQ(counts[State::accepted], 0);
}

TEST_P(BackendContract, RemovesAnEmailWithItsHistory) {
  moved(created("one"), State::intaking);
  created("two");
  EXPECT_TRUE(run(backend().remove("one")).value());
  EXPECT_FALSE(run(backend().remove("one")).value());
  EXPECT_FALSE(run(backend().find("one")).value());
  EXPECT_EQ(history("one"), "");
  EXPECT_EQ(found("two").status, State::accepted);
  EXPECT_TRUE(run(backend().create({.id = "one"})).value()) << "its id is free again";
}

TEST_P(BackendContract, KeepsAnEmailForAsLongAsItIsToldTo) {
  const auto seconds_from_now = [](seconds more) {
    return epoch_milliseconds(std::chrono::system_clock::now() + more) / 1000;
  };
  EXPECT_TRUE(run(backend().create({.id = "one", .ttl = seconds_from_now(seconds(60))})).value());
  moved(found("one"), State::intaking);
  auto position = run(backend().changes("", 100)).value().position;
  ASSERT_TRUE(run(backend().keep_until("one", std::nullopt)));
  EXPECT_FALSE(found("one").ttl);
  const auto later = seconds_from_now(seconds(3600));
  ASSERT_TRUE(run(backend().keep_until("one", later)));
  EXPECT_EQ(found("one").ttl.value_or(later), later) << "MySQL has none";
  EXPECT_EQ(history("one"), "ACCEPTED,INTAKING");
  // That is no change of its state, for whoever follows them.
  subject().foreign_accept("two", "");
  EXPECT_EQ(changes_until(position, "two", State::accepted).size(), 1u);
  EXPECT_TRUE(run(backend().keep_until("three", later))) << "there is none";
  EXPECT_FALSE(run(backend().find("three")).value());
}

TEST_P(BackendContract, SeesTheRowsOfAForeignProgram) {
  auto position = run(backend().changes("", 100)).value().position;
  subject().foreign_accept("foreign", "/payload/foreign.json");
  changes_until(position, "foreign", State::accepted);
  EXPECT_EQ(found("foreign").payload_file_path, "/payload/foreign.json");
  ASSERT_TRUE(subject().foreign_move("foreign", State::accepted, State::intaking, ""));
  ASSERT_TRUE(subject().foreign_move("foreign", State::intaking, State::ready, "by another"));
  const auto changes = changes_until(position, "foreign", State::ready);
  const auto ready = std::ranges::find(changes, State::ready, &Change::status);
  ASSERT_NE(ready, changes.end());
  EXPECT_EQ(ready->reason, "by another");
  EXPECT_FALSE(ready->ours);
}

TEST_P(BackendContract, GoesOnBehindEachChange) {
  auto position = run(backend().changes("", 100)).value().position;
  for (int i = 0; i < 10; ++i) subject().foreign_accept(fmt::format("email-{}", i), "");
  const auto again = position;
  changes_until(position, "email-9", State::accepted);
  // From the beginning, one by one.
  std::set<std::string> seen;
  position = again;
  const auto deadline = std::chrono::steady_clock::now() + seconds(15);
  while (seen.size() < 10 && std::chrono::steady_clock::now() < deadline) {
    const auto changes = run(backend().changes(position, 3)).value();
    for (const auto& change : changes.changes) seen.insert(change.id);
    position = changes.changes.empty() ? changes.position : changes.changes.back().position;
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST_P(BackendContract, SharesAnEmailWithAForeignProgram) {
  auto email = created("one");
  email = moved(email, State::intaking).value();
  ASSERT_TRUE(subject().foreign_move("one", State::intaking, State::ready, "foreign intake"));
  EXPECT_FALSE(moved(email, State::ready)) << "the foreign program was faster";
  email = moved(found("one"), State::processing).value();
  EXPECT_FALSE(subject().foreign_move("one", State::ready, State::processing, "")) << "we were faster";
  ASSERT_TRUE(subject().foreign_move("one", State::processing, State::sent, "250 ok"));
  ASSERT_TRUE(moved(found("one"), State::calling_sent_callback));
  EXPECT_EQ(history("one"),
            "ACCEPTED,INTAKING,READY(foreign intake),PROCESSING,SENT(250 ok),CALLING-SENT-CALLBACK");
}

INSTANTIATE_TEST_SUITE_P(On, BackendContract, testing::ValuesIn(kinds()),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace tabella::outbox

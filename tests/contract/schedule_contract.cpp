#include <atomic>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "contract/contract.h"
#include "schedule/schedule.h"
#include "store/pause.h"
#include "support/own_thread.h"

namespace tabella::contract {
namespace {

using schedule::Cancelled;
using schedule::Firing;
using schedule::Schedule;
using std::chrono::milliseconds;

using Process = test::OwnThread<Schedule>;

class Schedules : public StoreContract {
 protected:
  struct Fired {
    TimePoint when;
    Firing firing;
  };

  static Schedule::Options options(std::string worker) {
    return {.table = "timers",
            .worker = std::move(worker),
            .lease = milliseconds{1500},
            .poll = milliseconds{20},
            .first_retry = milliseconds{50}};
  }
  std::unique_ptr<Schedule> make(Schedule::Options options, Schedule::Handler handler) {
    auto schedule = std::make_unique<Schedule>(store(), clock(), std::move(options));
    schedule->on("test", std::move(handler));
    return schedule;
  }
  std::unique_ptr<Schedule> make(std::string worker, Schedule::Handler handler) {
    return make(options(std::move(worker)), std::move(handler));
  }
  std::unique_ptr<Schedule> make(std::string worker) {
    return make(std::move(worker), [this](const Firing& firing) -> boost::asio::awaitable<void> {
      note(firing);
      co_return;
    });
  }

  void note(const Firing& firing) {
    const std::lock_guard lock(mutex_);
    fired_.push_back({clock().now(), firing});
  }
  std::vector<Fired> fired() {
    const std::lock_guard lock(mutex_);
    return fired_;
  }

  TimePoint in(milliseconds length) const { return clock().now() + length; }
  std::string set(Schedule& schedule, const std::string& id, TimePoint at, const std::string& payload = "") {
    return outcome(run(schedule.put({.id = id, .kind = "test", .at = at, .payload = payload})));
  }
  // The table is made by whoever runs first.
  void make_table() {
    const auto made = run(store::prepare_tables(store(), {schedule::plan("timers")}, store::Missing::create));
    ASSERT_TRUE(made) << made.error().message;
  }
  // Time goes by, on stores whose time stands still unless it is moved.
  bool eventually_fired(size_t count) {
    return eventually([&] {
      advance(milliseconds{10});
      return fired().size() >= count;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<Fired> fired_;
};

TEST_P(Schedules, FireWhatIsDueOnceAndNotBefore) {
  make_table();
  Process process(make("one"));
  EXPECT_EQ(set(*process, "now", in(milliseconds{-10}), "first"), "ok");
  EXPECT_TRUE(eventually_fired(1));
  const auto late = in(milliseconds{150});
  EXPECT_EQ(set(*process, "later", late, "second"), "ok");
  EXPECT_TRUE(eventually_fired(2));
  std::this_thread::sleep_for(milliseconds{100});
  const auto all = fired();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].firing.timer.payload, "first");
  EXPECT_EQ(all[1].firing.timer.payload, "second");
  EXPECT_EQ(all[1].firing.timer.kind, "test");
  EXPECT_EQ(all[1].firing.attempt, 1);
  EXPECT_EQ(epoch_milliseconds(all[1].firing.timer.at), epoch_milliseconds(late));
  EXPECT_GE(all[1].when, std::chrono::time_point_cast<milliseconds>(late));
}

TEST_P(Schedules, FireWhatWasSetBeforeTheyRan) {
  make_table();
  const auto schedule = make("setter");
  for (int i = 0; i < 300; ++i) EXPECT_EQ(set(*schedule, fmt::format("t{}", i), in(milliseconds{-1})), "ok");
  restart();
  Process process(make("one"));
  EXPECT_TRUE(eventually_fired(300));
  process.stop();
  std::map<std::string, int> times;
  for (const auto& one : fired()) ++times[one.firing.timer.id];
  EXPECT_EQ(times.size(), 300u);
  EXPECT_EQ(fired().size(), 300u);
}

TEST_P(Schedules, FireAgainAtANewTimeOrNotAtAll) {
  make_table();
  const auto schedule = make("setter");
  set(*schedule, "moved", in(std::chrono::hours{1}));
  set(*schedule, "gone", in(milliseconds{1}));
  set(*schedule, "replaced", in(std::chrono::hours{1}), "old");
  EXPECT_EQ(*run(schedule->cancel("gone")), Cancelled::yes);
  EXPECT_EQ(*run(schedule->cancel("gone")), Cancelled::unknown);
  EXPECT_EQ(*run(schedule->reschedule("gone", in(milliseconds{1}))), false);
  EXPECT_EQ(*run(schedule->reschedule("moved", in(milliseconds{1}))), true);
  EXPECT_EQ(set(*schedule, "replaced", in(milliseconds{1}), "new"), "ok");
  Process process(make("one"));
  EXPECT_TRUE(eventually_fired(2));
  process.stop();
  std::map<std::string, std::string> payloads;
  for (const auto& one : fired()) payloads[one.firing.timer.id] = one.firing.timer.payload;
  EXPECT_EQ(payloads, (std::map<std::string, std::string>{{"moved", ""}, {"replaced", "new"}}));
  EXPECT_EQ(*run(schedule->cancel("moved")), Cancelled::unknown) << "it has fired";
  EXPECT_EQ(*run(schedule->reschedule("moved", in(milliseconds{1}))), false);
  EXPECT_EQ(set(*schedule, "moved", in(std::chrono::hours{1})), "ok") << "its id can be used again";
  EXPECT_EQ(*run(schedule->cancel("moved")), Cancelled::yes);
}

TEST_P(Schedules, TryAgainWhatFailedAndCountTheAttempts) {
  make_table();
  Process process(make("one", [this](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    if (firing.attempt < 3) throw std::runtime_error("not now");
    co_return;
  }));
  set(*process, "stubborn", in(milliseconds{0}));
  EXPECT_TRUE(eventually_fired(3));
  process.stop();
  const auto all = fired();
  ASSERT_EQ(all.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all[static_cast<size_t>(i)].firing.attempt, i + 1);
}

TEST_P(Schedules, LeaveKindsThatTheyDoNotKnowToOthers) {
  make_table();
  Process process(make("one"));
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(run(process->put(
        {.id = fmt::format("other{}", i), .kind = "unknown", .at = in(milliseconds{-1}), .payload = ""})));
  set(*process, "known", in(milliseconds{0}));
  EXPECT_TRUE(eventually_fired(1));
  EXPECT_EQ(fired()[0].firing.timer.id, "known");
  EXPECT_EQ(*run(process->cancel("other3")), Cancelled::yes) << "nobody has claimed it";
}

TEST_P(Schedules, LetNoKindKeepTheOthersWaiting) {
  make_table();
  auto narrow = options("one");
  narrow.of_one_kind = 1;
  std::atomic<bool> released{false};
  auto schedule = make(narrow, [&](const Firing& firing) -> boost::asio::awaitable<void> {
    while (!released) co_await store::pause_for(milliseconds{5});
    note(firing);
  });
  schedule->on("other", [&](const Firing&) -> boost::asio::awaitable<void> {
    released = true;
    co_return;
  });
  Process process(std::move(schedule));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(set(*process, fmt::format("t{}", i), in(milliseconds{-100})), "ok");
  EXPECT_EQ(outcome(run(process->put({.id = "x", .kind = "other", .at = in(milliseconds{-1})}))), "ok");
  EXPECT_TRUE(eventually_fired(20)) << "what waits for the other kind would wait for ever";
}

// Kinds that take all the places have to give one up for another as soon as one of theirs has ended.
TEST_P(Schedules, LetNoTwoKindsKeepTheOthersWaiting) {
  make_table();
  auto narrow = options("one");
  narrow.concurrency = 2;
  narrow.of_one_kind = 1;
  std::atomic<int> slow{0};
  std::atomic<int> slow_before{-1};
  const auto take_long = [&](const Firing&) -> boost::asio::awaitable<void> {
    co_await store::pause_for(milliseconds{20});
    ++slow;
  };
  auto schedule = make(narrow, take_long);
  schedule->on("second", take_long);
  schedule->on("third", [&](const Firing&) -> boost::asio::awaitable<void> {
    slow_before = slow.load();
    co_return;
  });
  for (int i = 0; i < 40; ++i) {
    const auto* kind = i % 2 == 0 ? "test" : "second";
    EXPECT_EQ(outcome(run(
                  schedule->put({.id = fmt::format("t{}", i), .kind = kind, .at = in(milliseconds{-100})}))),
              "ok");
  }
  EXPECT_EQ(outcome(run(schedule->put({.id = "x", .kind = "third", .at = in(milliseconds{-1})}))), "ok");
  Process process(std::move(schedule));
  EXPECT_TRUE(eventually([&] {
    advance(milliseconds{10});
    return slow == 40 && slow_before >= 0;
  }));
  EXPECT_LT(slow_before, 20);
}

// Those that find no room wait in memory; what was changed meanwhile counts as it is.
TEST_P(Schedules, FireAllThatWaitedForRoom) {
  make_table();
  auto few = options("one");
  few.of_one_kind = 1;
  Process process(make(few, [this](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    co_await store::pause_for(milliseconds{1});
  }));
  const auto begin = in(milliseconds{300});
  for (int i = 0; i < 60; ++i) EXPECT_EQ(set(*process, fmt::format("t{}", i), begin - milliseconds{i}), "ok");
  EXPECT_EQ(outcome(run(process->reschedule("t5", begin + milliseconds{700}))), "ok");
  EXPECT_EQ(run(process->cancel("t6")).value(), Cancelled::yes);
  EXPECT_TRUE(eventually_fired(59));
  std::this_thread::sleep_for(milliseconds{50});
  const auto all = fired();
  ASSERT_EQ(all.size(), 59u);
  EXPECT_EQ(all.back().firing.timer.id, "t5");
  for (const auto& one : all) EXPECT_NE(one.firing.timer.id, "t6");
}

// What a look has passed is not looked at again: one that is set for a time that is over is seen all the
// same.
TEST_P(Schedules, FireWhatIsSetForTheTimeBeforeTheLastLook) {
  make_table();
  Process process(make("one"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(set(*process, fmt::format("now{}", i), in(milliseconds{0})), "ok");
    EXPECT_TRUE(eventually_fired(static_cast<size_t>(2 * i + 1)));
    EXPECT_EQ(set(*process, fmt::format("before{}", i), in(std::chrono::hours{-1})), "ok");
    EXPECT_TRUE(eventually_fired(static_cast<size_t>(2 * i + 2)));
  }
}

TEST_P(Schedules, AreSetInATransactionOrWhereThereIsNone) {
  make_table();
  Process process(make("one"));
  const schedule::Timer timer{.id = "together", .kind = "test", .at = in(milliseconds{200})};
  std::vector<store::TransactWrite> writes;
  writes.push_back(process->put_write(timer));
  EXPECT_EQ(outcome(run(store().transact_write_items({.writes = std::move(writes)}))), "ok");
  process->was_set(timer);
  EXPECT_FALSE(
      run(process->put_if_absent({.id = "together", .kind = "test", .at = in(milliseconds{0})})).value());
  EXPECT_TRUE(eventually_fired(1));
  EXPECT_GE(fired()[0].when, std::chrono::time_point_cast<milliseconds>(timer.at));
  EXPECT_TRUE(eventually([&] {
    return run(process->put_if_absent({.id = "together", .kind = "test", .at = in(milliseconds{0})})).value();
  })) << "it has fired";
  EXPECT_TRUE(eventually_fired(2));
}

TEST_P(Schedules, SayThatATimerIsRunningWhenItIsCancelled) {
  make_table();
  std::atomic<bool> go_on = false;
  Process process(make("one", [&](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
    while (!go_on) {
      timer.expires_after(milliseconds{5});
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    throw std::runtime_error("would be tried again");
  }));
  set(*process, "long", in(milliseconds{0}));
  EXPECT_TRUE(eventually_fired(1));
  EXPECT_EQ(*run(process->cancel("long")), Cancelled::running);
  go_on = true;
  std::this_thread::sleep_for(milliseconds{200});
  process.stop();
  EXPECT_EQ(fired().size(), 1u);
}

// Longer than its lease, with another who would take it over.
TEST_P(Schedules, KeepWhatTheyHandleHoweverLongItTakes) {
  make_table();
  std::atomic<bool> go_on = false;
  const auto slow = [&](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
    while (!go_on) {
      timer.expires_after(milliseconds{5});
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  };
  Process one(make("one", slow));
  Process two(make("two", slow));
  set(*one, "long", in(milliseconds{0}));
  EXPECT_TRUE(eventually_fired(1));
  for (int i = 0; i < 250; ++i) {
    advance(milliseconds{8});
    std::this_thread::sleep_for(milliseconds{8});
  }
  go_on = true;
  one.stop();
  two.stop();
  EXPECT_EQ(fired().size(), 1u);
}

TEST_P(Schedules, TakeOverFromOneThatDiedAndSaySo) {
  make_table();
  Process doomed(make("doomed", [&](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, std::chrono::hours{1});
    co_await timer.async_wait(boost::asio::use_awaitable);
  }));
  set(*doomed, "a", in(milliseconds{0}));
  EXPECT_TRUE(eventually_fired(1));
  doomed.die();
  Process heir(make("heir"));
  EXPECT_TRUE(eventually_fired(2));
  heir.stop();
  ASSERT_EQ(fired().size(), 2u);
  EXPECT_EQ(fired()[1].firing.attempt, 2);
}

// They never look by themselves here: whatever fires has woken them.
TEST_P(Schedules, BeginAtOnceWithWhatWasLeftWhereNobodyElseCanBeAtIt) {
  make_table();
  // As a process leaves it that is killed: claimed, with its time put off by the lease.
  const auto claimed = epoch_milliseconds(in(std::chrono::minutes{1}));
  for (const auto* id : {"left", "waiting", "another's"})
    set(*make("setter"), id, in(std::chrono::minutes{1}));
  for (const auto& [id, owner] : {std::pair{"left", "embedded/dead/1"}, {"another's", "two/alive/1"}}) {
    store::Update claim("timers", schedule::key_of(id));
    claim.set("owner", owner).set("due", claimed).set("attempt", 1);
    ASSERT_TRUE(run(store().update_item(std::move(claim))));
  }
  auto with_store = options("embedded/one");
  with_store.with_store = "embedded/";
  with_store.lease = std::chrono::minutes{2};
  Process process(make(std::move(with_store), [this](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    co_return;
  }));
  EXPECT_TRUE(eventually([&] { return !fired().empty(); }));
  std::this_thread::sleep_for(milliseconds{100});
  process.stop();
  ASSERT_EQ(fired().size(), 1u);
  EXPECT_EQ(fired()[0].firing.timer.id, "left");
  EXPECT_EQ(fired()[0].firing.attempt, 2);
}

TEST_P(Schedules, DoNotCountWhatIsPutOff) {
  make_table();
  Schedule* self = nullptr;
  auto schedule = make("one", [&](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    if (fired().size() == 1) throw std::runtime_error("the test fails");
    if (fired().size() < 4) EXPECT_TRUE(co_await self->put_off(firing, in(milliseconds{20})));
  });
  self = schedule.get();
  const auto at = in(milliseconds{-10});
  EXPECT_EQ(set(*schedule, "busy", at), "ok");
  Process process(std::move(schedule));
  EXPECT_TRUE(eventually_fired(4));
  process.stop();
  std::vector<int> attempts;
  for (const auto& one : fired()) attempts.push_back(one.firing.attempt);
  EXPECT_EQ(attempts, (std::vector<int>{1, 2, 2, 2}));
  EXPECT_EQ(epoch_milliseconds(fired()[3].firing.timer.at), epoch_milliseconds(at)) << "what it was set for";
}

TEST_P(Schedules, AreWokenByWhatIsSetInTheirProcess) {
  make_table();
  auto alone = options("one");
  alone.busy_poll = alone.poll = std::chrono::hours{1};
  alone.concurrency = 1;
  std::atomic<bool> hold = true;
  Process process(make(alone, [&](const Firing& firing) -> boost::asio::awaitable<void> {
    note(firing);
    if (firing.timer.payload == "fails" && firing.attempt == 1) throw 1;  // not even an exception
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
    while (firing.timer.payload == "waits" && hold) {
      timer.expires_after(milliseconds{5});
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  }));
  auto& schedule = *process;
  std::this_thread::sleep_for(milliseconds{100});  // it has looked, and sleeps
  set(schedule, "late", in(std::chrono::hours{1}));
  set(schedule, "soon", in(milliseconds{30}));
  EXPECT_TRUE(eventually_fired(1));
  EXPECT_TRUE(*run(schedule.reschedule("late", in(milliseconds{30}))));
  EXPECT_TRUE(eventually_fired(2)) << "a timer that was put forward";
  set(schedule, "tried twice", in(milliseconds{0}), "fails");
  EXPECT_TRUE(eventually_fired(4)) << "one that failed";
  set(schedule, "long", in(milliseconds{0}), "waits");
  EXPECT_TRUE(eventually_fired(5));
  set(schedule, "long", in(milliseconds{0}), "again");  // while it runs
  set(schedule, "behind", in(milliseconds{0}));         // while there is no room
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(fired().size(), 5u);
  hold = false;
  EXPECT_TRUE(eventually_fired(7)) << "what had to wait";
  process.stop();
  EXPECT_EQ(fired().size(), 7u);
}

TEST_P(Schedules, ShareTheirTimers) {
  make_table();
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 3; ++i)
    processes.push_back(std::make_unique<Process>(make(fmt::format("worker-{}", i))));
  constexpr int kTimers = 300;
  for (int i = 0; i < kTimers; ++i)
    set(**processes[static_cast<size_t>(i) % 3], fmt::format("t{}", i), in(milliseconds{i % 50}));
  EXPECT_TRUE(eventually_fired(kTimers));
  for (const auto& process : processes) process->stop();
  EXPECT_EQ(fired().size(), static_cast<size_t>(kTimers)) << "nobody died: nothing comes twice";
  for (const auto& one : fired()) EXPECT_EQ(one.firing.attempt, 1);
}

TABELLA_CONTRACT(Schedules);

}  // namespace
}  // namespace tabella::contract

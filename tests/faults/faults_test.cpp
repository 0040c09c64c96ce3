// A remote Store whose network and endpoint fail all the time: nothing that it acknowledges is lost, nothing
// that it says did not happen has happened, and nothing happens twice.
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/environment.h"
#include "faults/fault_proxy.h"
#include "item/attribute_json.h"
#include "item/number.h"
#include "remote/remote_store.h"
#include "schedule/schedule.h"
#include "store/pause.h"
#include "store/stream_reader.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/own_thread.h"
#include "support/process.h"
#include "support/run.h"

namespace tabella {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using item::Value;
using std::chrono::milliseconds;
using store::ErrorCode;

constexpr int kWorkers = 16;
constexpr int kRounds = 60;

item::Item item_of(std::initializer_list<std::pair<const char*, Value>> members) {
  auto map = Value::map();
  for (const auto& [name, value] : members) map.set_member(name, value);
  return item::encode_item(map);
}

int64_t number_of(const std::optional<item::Item>& item, std::string_view name) {
  const auto value = item ? item->find(name) : std::nullopt;
  return value ? item::number_to_int(value->content()).value_or(0) : 0;
}

// What a kind of write was told of its fate.
struct Tally {
  std::atomic<int64_t> made = 0;
  std::atomic<int64_t> unsure = 0;
  std::atomic<int64_t> refused = 0;

  template <class T>
  void count(const store::Result<T>& result) {
    if (result)
      ++made;
    else if (result.error().unsure)
      ++unsure;
    else
      ++refused;
  }
};

class Faults : public testing::Test {
 protected:
  Faults()
      : port_(test::free_port()),
        server_({environment_variable("TABELLA"), "serve", "--data", folder_.path().string(), "--dynamodb",
                 fmt::format("127.0.0.1:{}", port_), "--http", "off", "--smtp", "off", "--durability",
                 "relaxed", "--log-level", "error"},
                "serves DynamoDB on"),
        proxy_(port_, 0.3, 7),
        direct_(options_for(port_), clock_),
        faulty_(options_for(proxy_.port()), clock_) {
    create("items");
  }

  static remote::RemoteOptions options_for(uint16_t port) {
    remote::RemoteOptions options;
    options.calls.endpoint = *remote::parse_endpoint(fmt::format("http://127.0.0.1:{}", port), "us-east-1");
    options.calls.credentials.given = remote::Credentials{.access_key = "id", .secret_key = "secret"};
    options.calls.attempt_timeout = milliseconds{250};
    options.calls.retry = {.attempts = 30,
                           .first_pause = milliseconds{1},
                           .longest_pause = milliseconds{20},
                           .quota = 1'000'000};
    options.stream_poll = milliseconds{5};
    return options;
  }

  void create(const std::string& name, std::optional<store::StreamView> stream = std::nullopt) {
    store::TableDefinition definition{.name = name};
    definition.billing_mode = store::BillingMode::pay_per_request;
    definition.attributes = {{"pk", item::Type::S}};
    definition.key_schema = {{"pk", store::KeyRole::hash}};
    definition.stream = stream;
    ASSERT_TRUE(test::run(store::prepare_tables(direct_, {{definition, {}}}, store::Missing::create)));
  }

  // Runs `work(worker)` for every worker at once, on two threads.
  void work(const std::function<awaitable<void>(int)>& work) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        asio::io_context context(1);
        for (int w = t; w < kWorkers; w += 2)
          asio::co_spawn(context, work(w), [](std::exception_ptr failure) {
            if (failure) std::rethrow_exception(failure);
          });
        context.run();
      });
    for (auto& thread : threads) thread.join();
    EXPECT_GT(proxy_.faults(), 50) << "nothing was tested";
  }

  std::optional<item::Item> get(const std::string& key) {
    const auto found = test::run(direct_.get_item(
        {.table = "items", .key = item_of({{"pk", Value::string(key)}}), .consistent = true}));
    EXPECT_TRUE(found) << found.error().message;
    return found ? found->item : std::nullopt;
  }

  // What was made and no more, and what nobody is sure of at most once.
  static void expect_within(int64_t found, const Tally& tally) {
    EXPECT_GE(found, tally.made);
    EXPECT_LE(found, tally.made + tally.unsure);
    EXPECT_GT(tally.made, 0);
  }

  SystemClock clock_;
  test::Folder folder_;
  uint16_t port_;
  test::Process server_;
  test::FaultProxy proxy_;
  remote::RemoteStore direct_;
  remote::RemoteStore faulty_;
};

TEST_F(Faults, LoseNoItemThatWasPut) {
  work([&](int w) -> awaitable<void> {
    for (int i = 0; i < kRounds; ++i) {
      const auto put = co_await faulty_.put_item(
          {.table = "items",
           .item = item_of({{"pk", Value::string(fmt::format("{}-{}", w, i))}, {"v", Value::integer(i)}}),
           .options = {}});
      EXPECT_TRUE(put) << put.error().message;
    }
  });
  for (int w = 0; w < kWorkers; ++w)
    for (int i = 0; i < kRounds; ++i) EXPECT_EQ(number_of(get(fmt::format("{}-{}", w, i)), "v"), i);
}

TEST_F(Faults, CountNothingTwice) {
  Tally tally;
  work([&](int) -> awaitable<void> {
    for (int i = 0; i < kRounds; ++i) {
      store::UpdateItemRequest request{.table = "items", .key = item_of({{"pk", Value::string("counter")}})};
      request.update = "ADD n :one";
      request.options.attributes.values = item_of({{":one", Value::integer(1)}});
      tally.count(co_await faulty_.update_item(std::move(request)));
    }
  });
  expect_within(number_of(get("counter"), "n"), tally);
  EXPECT_GT(tally.unsure, 0) << "some answers were lost";
}

TEST_F(Faults, LetOneWinWhereOneMay) {
  std::mutex mutex;
  std::map<std::string, std::string> winners;
  std::set<std::pair<std::string, std::string>> losers;
  work([&](int w) -> awaitable<void> {
    const auto me = fmt::format("worker-{}", w);
    for (int i = 0; i < kRounds; ++i) {
      const auto key = fmt::format("seat-{}", i);
      store::PutItemRequest request{
          .table = "items",
          .item = item_of({{"pk", Value::string(key)}, {"owner", Value::string(me)}}),
          .options = {}};
      request.options.condition = "attribute_not_exists(pk)";
      const auto put = co_await faulty_.put_item(std::move(request));
      const std::lock_guard lock(mutex);
      if (put)
        EXPECT_TRUE(winners.emplace(key, me).second) << key << " was won by two";
      else if (!put.error().unsure)
        losers.emplace(key, me);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto key = fmt::format("seat-{}", i);
    const auto row = get(key);
    ASSERT_TRUE(row);
    const auto owner = std::string(row->find("owner")->content());
    if (winners.contains(key)) EXPECT_EQ(winners[key], owner);
    EXPECT_FALSE(losers.contains({key, owner})) << owner << " was told that it lost " << key;
  }
}

TEST_F(Faults, ChangeWhatWasSeenOnce) {
  Tally tally;
  work([&](int) -> awaitable<void> {
    for (int i = 0; i < kRounds; ++i) {
      const auto seen = co_await faulty_.get_item(
          {.table = "items", .key = item_of({{"pk", Value::string("version")}}), .consistent = true});
      EXPECT_TRUE(seen) << seen.error().message;
      const auto version = seen ? number_of(seen->item, "v") : 0;
      store::UpdateItemRequest request{.table = "items", .key = item_of({{"pk", Value::string("version")}})};
      request.update = "SET v = :new";
      request.options.condition = version == 0 ? "attribute_not_exists(v)" : "v = :old";
      request.options.attributes.values =
          version == 0 ? item_of({{":new", Value::integer(1)}})
                       : item_of({{":new", Value::integer(version + 1)}, {":old", Value::integer(version)}});
      tally.count(co_await faulty_.update_item(std::move(request)));
    }
  });
  expect_within(number_of(get("version"), "v"), tally);
}

TEST_F(Faults, MakeTransactionsOnce) {
  Tally tally;
  work([&](int) -> awaitable<void> {
    for (int i = 0; i < kRounds; ++i) {
      store::TransactWriteItemsRequest request;
      for (const auto* key : {"left", "right"}) {
        store::TransactWrite write{.kind = store::TransactWrite::Kind::update, .table = "items"};
        write.item = item_of({{"pk", Value::string(key)}});
        write.update = "ADD n :one";
        write.attributes.values = item_of({{":one", Value::integer(1)}});
        request.writes.push_back(std::move(write));
      }
      tally.count(co_await faulty_.transact_write_items(std::move(request)));
    }
  });
  EXPECT_EQ(number_of(get("left"), "n"), number_of(get("right"), "n"));
  expect_within(number_of(get("left"), "n"), tally);
  EXPECT_EQ(tally.made, kWorkers * kRounds) << "a token makes every one of them safe to send again";
}

TEST_F(Faults, FinishBatches) {
  work([&](int w) -> awaitable<void> {
    for (int i = 0; i < kRounds / 4; ++i) {
      store::BatchWriteItemRequest request;
      auto& writes = request.tables.emplace_back("items", std::vector<store::BatchWrite>()).second;
      store::BatchGetItemRequest read;
      auto& keys = read.tables.emplace_back(store::BatchGetTable{.table = "items"}).keys;
      read.tables[0].consistent = true;
      for (int k = 0; k < 25; ++k) {
        const auto key = item_of({{"pk", Value::string(fmt::format("{}-{}-{}", w, i, k))}});
        writes.push_back({.put = true, .item = key});
        keys.push_back(key);
      }
      const auto written = co_await faulty_.batch_write_item(std::move(request));
      EXPECT_TRUE(written) << written.error().message;
      EXPECT_TRUE(written && written->unprocessed.empty());
      const auto found = co_await faulty_.batch_get_item(std::move(read));
      EXPECT_TRUE(found) << found.error().message;
      if (!found) continue;
      EXPECT_TRUE(found->unprocessed.empty());
      EXPECT_EQ(found->responses.size(), 1u);
      if (!found->responses.empty()) EXPECT_EQ(found->responses[0].second.size(), 25u);
    }
  });
}

TEST_F(Faults, SkipNoRecordOfAStream) {
  create("watched", store::StreamView::new_image);
  constexpr int kItems = 10;
  constexpr int kVersions = 30;
  std::map<std::string, int64_t> last;
  int64_t handled = 0;
  store::StreamReader reader(
      faulty_, clock_,
      {.table = "watched", .consumer = "faults", .worker = "one", .lease = milliseconds{5000}, .batch = 20},
      [&](const store::StreamRecord& record) -> awaitable<void> {
        const auto key = std::string(record.new_image->find("pk")->content());
        const auto version = number_of(record.new_image, "v");
        EXPECT_LE(version, last[key] + 1) << "a version was skipped";
        if (version == last[key] + 1) ++handled;
        last[key] = std::max(last[key], version);
        co_return;
      });
  asio::io_context context(1);
  asio::co_spawn(context, reader.run(), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  std::thread writer([&] {
    for (int v = 1; v <= kVersions; ++v)
      for (int i = 0; i < kItems; ++i)
        EXPECT_TRUE(test::run(direct_.put_item(
            {.table = "watched",
             .item = item_of({{"pk", Value::string(fmt::format("k{}", i))}, {"v", Value::integer(v)}}),
             .options = {}})));
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (handled < kItems * kVersions && std::chrono::steady_clock::now() < until)
    context.run_for(milliseconds{20});
  writer.join();
  reader.stop();
  context.run_for(std::chrono::seconds{20});
  EXPECT_EQ(handled, kItems * kVersions);
}

TEST_F(Faults, FireEveryTimerOnce) {
  schedule::Schedule schedule(
      faulty_, clock_,
      {.table = "timers", .worker = "one", .lease = milliseconds{10'000}, .poll = milliseconds{50}});
  std::map<std::string, int> fired;
  schedule.on("test", [&](const schedule::Firing& firing) -> awaitable<void> {
    ++fired[firing.timer.id];
    EXPECT_EQ(firing.attempt, 1);
    co_await store::pause_for(milliseconds{10});  // long enough for something to be sent again meanwhile
  });
  ASSERT_TRUE(test::run(store::prepare_tables(direct_, {schedule::plan("timers")}, store::Missing::create)));
  constexpr size_t kTimers = 100;
  std::set<std::string> cancelled;
  std::atomic<bool> all_set = false;
  asio::io_context context(1);
  asio::co_spawn(context, schedule.run(), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  std::thread setter([&] {
    for (size_t i = 0; i < kTimers; ++i)
      EXPECT_TRUE(test::run(schedule.put({.id = fmt::format("t{}", i),
                                          .kind = "test",
                                          .at = clock_.now() + milliseconds{i % 20},
                                          .payload = ""})));
    // Moved, and cancelled, through the same faults.
    for (size_t i = 0; i < kTimers; ++i) {
      const auto id = fmt::format("moved{}", i);
      EXPECT_TRUE(test::run(schedule.put(
          {.id = id, .kind = "test", .at = clock_.now() + std::chrono::hours{1}, .payload = ""})));
      const auto moved = test::run(schedule.reschedule(id, clock_.now() + milliseconds{i % 20}));
      EXPECT_TRUE(moved && *moved);
      const auto lost = fmt::format("cancelled{}", i);
      EXPECT_TRUE(test::run(
          schedule.put({.id = lost, .kind = "test", .at = clock_.now() + milliseconds{500}, .payload = ""})));
      const auto gone = test::run(schedule.cancel(lost));
      EXPECT_TRUE(gone) << gone.error().message;
      if (gone && *gone == schedule::Cancelled::yes) cancelled.insert(lost);
    }
    all_set = true;
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto fired_of = [&](std::string_view kind) {
    return static_cast<size_t>(
        std::ranges::count_if(fired, [&](const auto& entry) { return entry.first.starts_with(kind); }));
  };
  while (!all_set || ((fired_of("t") < kTimers || fired_of("moved") < kTimers) &&
                      std::chrono::steady_clock::now() < until))
    context.run_for(milliseconds{20});
  setter.join();
  context.run_for(milliseconds{500});  // whatever might come twice
  schedule.stop();
  context.run_for(std::chrono::seconds{20});
  EXPECT_EQ(fired_of("t"), kTimers);
  EXPECT_EQ(fired_of("moved"), kTimers);
  for (const auto& [id, times] : fired) EXPECT_EQ(times, 1) << id;
  EXPECT_GT(cancelled.size(), 0u);
  for (const auto& id : cancelled) EXPECT_FALSE(fired.contains(id)) << id;
}

// The timer is moved, and fires; only then comes what was sent again because the answer was lost.
TEST_F(Faults, MoveATimerOnce) {
  test::FaultProxy proxy(port_, 0, 1);
  auto options = options_for(proxy.port());
  options.calls.retry.first_pause = options.calls.retry.longest_pause = milliseconds{400};
  remote::RemoteStore slow_to_retry(std::move(options), clock_);
  schedule::Schedule setter(slow_to_retry, clock_, {.table = "timers"});
  schedule::Schedule schedule(direct_, clock_, {.table = "timers", .poll = milliseconds{5}});
  std::map<std::string, int> fired;
  schedule.on("test", [&](const schedule::Firing& firing) -> awaitable<void> {
    ++fired[firing.timer.id];
    co_await store::pause_for(milliseconds{600});
  });
  ASSERT_TRUE(test::run(store::prepare_tables(direct_, {schedule::plan("timers")}, store::Missing::create)));
  asio::io_context context(1);
  asio::co_spawn(context, schedule.run(), [](std::exception_ptr) {});
  std::thread thread([&] { context.run(); });
  for (const auto* id : {"a", "b", "c", "d", "e"}) {
    EXPECT_TRUE(test::run(
        setter.put({.id = id, .kind = "test", .at = clock_.now() + std::chrono::hours{1}, .payload = ""})));
    proxy.meet(test::Fault::reset_after);
    const auto moved = test::run(setter.reschedule(id, clock_.now()));
    EXPECT_TRUE(moved && *moved);
  }
  std::this_thread::sleep_for(milliseconds{1500});  // whatever might come twice
  asio::post(context, [&] { schedule.stop(); });
  thread.join();
  EXPECT_EQ(fired, (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}));
}

// A timer runs, and is cancelled: the answer to that is lost.
TEST_F(Faults, SayThatATimerWasRunningWhenItWasCancelled) {
  test::FaultProxy proxy(port_, 0, 1);
  remote::RemoteStore store(options_for(proxy.port()), clock_);
  const schedule::Schedule::Options options{.table = "timers", .poll = milliseconds{5}};
  schedule::Schedule canceller(store, clock_, options);
  auto runner = std::make_unique<schedule::Schedule>(direct_, clock_, options);
  std::atomic<int> begun = 0;
  std::atomic<bool> go_on = false;
  runner->on("test", [&](const schedule::Firing&) -> awaitable<void> {
    ++begun;
    while (!go_on) co_await store::pause_for(milliseconds{5});
  });
  ASSERT_TRUE(test::run(store::prepare_tables(direct_, {schedule::plan("timers")}, store::Missing::create)));
  test::OwnThread running(std::move(runner));
  EXPECT_TRUE(test::run(running->put({.id = "a", .kind = "test", .at = clock_.now(), .payload = ""})));
  while (begun == 0) std::this_thread::sleep_for(milliseconds{5});
  proxy.meet(test::Fault::reset_after, 1);
  EXPECT_EQ(*test::run(canceller.cancel("a")), schedule::Cancelled::running);
  go_on = true;
}

// A row that cannot be claimed costs a look now and then, and nobody else his turn.
TEST_F(Faults, LeaveATimerAloneThatCannotBeClaimed) {
  ASSERT_TRUE(test::run(store::prepare_tables(direct_, {schedule::plan("timers")}, store::Missing::create)));
  ASSERT_TRUE(test::run(direct_.put_item({.table = "timers",
                                          .item = item_of({{"id", Value::string("broken")},
                                                           {"kind", Value::string("test")},
                                                           {"shard", Value::string("00")},
                                                           {"due", Value::integer(1)},
                                                           {"attempt", Value::string("none")}}),
                                          .options = {}})));
  remote::RemoteStore store(options_for(port_), clock_);
  auto runner = std::make_unique<schedule::Schedule>(
      store, clock_, schedule::Schedule::Options{.table = "timers", .poll = milliseconds{200}});
  std::atomic<int> fired = 0;
  runner->on("test", [&](const schedule::Firing&) -> awaitable<void> {
    ++fired;
    co_return;
  });
  test::OwnThread running(std::move(runner));
  std::this_thread::sleep_for(milliseconds{1000});
  EXPECT_TRUE(test::run(running->put({.id = "whole", .kind = "test", .at = clock_.now(), .payload = ""})));
  while (fired == 0) std::this_thread::sleep_for(milliseconds{5});
  running.stop();
  metrics::Exposition metrics;
  store.write_metrics(metrics);
  const auto text = metrics.text();
  const auto at = text.find("{result=\"ok\"} ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LT(std::stod(text.substr(at + 14)), 500) << "it spins";
}

}  // namespace
}  // namespace tabella

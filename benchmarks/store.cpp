// One Store, asked as fast as it answers: the C++ side of ./bench store.
//
//   store_bench embedded:FOLDER|URL prepare              makes the tables and their items
//   store_bench embedded:FOLDER|URL OPERATION SECONDS    prints how many were answered in a second
//   store_bench embedded:FOLDER|URL timers SECONDS       prints how late timers fired: median, 99th percentile, worst, in ms
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/engine.h"
#include "remote/remote_store.h"
#include "schedule/schedule.h"
#include "store/tables.h"

namespace tabella {
namespace {

using boost::asio::awaitable;
using item::Value;
using SteadyClock = std::chrono::steady_clock;

constexpr int kItems = 10'000;
constexpr int kStreams = 100;
constexpr int kEventsPerStream = 100;
constexpr int kAtOnce = 64;

item::Item item_of(std::initializer_list<std::pair<const char*, Value>> members) {
  auto map = Value::map();
  for (const auto& [name, value] : members) map.set_member(name, value);
  return item::encode_item(map);
}

Value item_key(uint64_t n) { return Value::string(fmt::format("item-{:07}", n)); }
Value stream_key(uint64_t n) { return Value::string(fmt::format("stream-{:05}", n)); }

item::Item item(uint64_t n) {
  return item_of({{"pk", item_key(n)},
                  {"title", Value::string("A title of moderate length")},
                  {"count", Value::integer(static_cast<int64_t>(random_bits() % 1'000'000'000))},
                  {"body", Value::string(std::string(230, 'x'))}});
}

item::Item event(uint64_t stream, int n) {
  return item_of({{"pk", stream_key(stream)},
                  {"sk", Value::integer(n)},
                  {"kind", Value::string("created")},
                  {"body", Value::string(std::string(250, 'x'))}});
}

template <class T>
T expect(store::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

store::TablePlan plan(const std::string& name, bool sorted) {
  store::TableDefinition definition{.name = name};
  definition.billing_mode = store::BillingMode::pay_per_request;
  definition.attributes = {{"pk", item::Type::S}};
  definition.key_schema = {{"pk", store::KeyRole::hash}};
  if (sorted) {
    definition.attributes.push_back({"sk", item::Type::N});
    definition.key_schema.push_back({"sk", store::KeyRole::range});
  }
  return {.definition = std::move(definition), .time_to_live = {}};
}

awaitable<void> load(store::Store& store, std::string table, std::vector<item::Item> items) {
  for (size_t from = 0; from < items.size(); from += 25) {
    store::BatchWriteItemRequest request;
    auto& writes = request.tables.emplace_back(table, std::vector<store::BatchWrite>()).second;
    for (size_t i = from; i < std::min(from + 25, items.size()); ++i)
      writes.push_back({.put = true, .item = items[i]});
    expect(co_await store.batch_write_item(std::move(request)));
  }
}

awaitable<void> prepare(store::Store& store) {
  expect(co_await store::prepare_tables(
      store, {plan("bench", false), plan("events", true), schedule::plan("bench-timers")},
      store::Missing::create));
  std::vector<item::Item> items;
  for (int i = 0; i < kItems; ++i) items.push_back(item(static_cast<uint64_t>(i)));
  co_await load(store, "bench", std::move(items));
  std::vector<item::Item> events;
  for (int s = 0; s < kStreams; ++s)
    for (int n = 0; n < kEventsPerStream; ++n) events.push_back(event(static_cast<uint64_t>(s), n));
  co_await load(store, "events", std::move(events));
}

awaitable<void> call(store::Store& store, const std::string& operation) {
  const auto n = random_bits();
  if (operation == "GetItem") {
    expect(co_await store.get_item({.table = "bench", .key = item_of({{"pk", item_key(n % kItems)}})}));
  } else if (operation == "PutItem") {
    expect(co_await store.put_item({.table = "bench", .item = item(n % kItems), .options = {}}));
  } else if (operation == "Query") {
    store::QueryRequest request;
    request.options.table = "events";
    request.key_condition = "pk = :p";
    request.options.attributes.values = item_of({{":p", stream_key(n % kStreams)}});
    request.options.limit = 10;
    request.forward = false;
    expect(co_await store.query(std::move(request)));
  } else {
    throw std::runtime_error("there is no operation " + operation);
  }
}

awaitable<void> repeat(store::Store& store, std::string operation, SteadyClock::time_point until, int64_t& count) {
  while (SteadyClock::now() < until) {
    co_await call(store, operation);
    ++count;
  }
}

// On one thread, as one thread of wrk.
void run(boost::asio::io_context& context, awaitable<void> work) {
  boost::asio::co_spawn(context, std::move(work), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

awaitable<void> set_timers(schedule::Schedule& schedule, const Clock& clock, int from, int step, int count, int within) {
  for (int i = from; i < count; i += step) {
    const auto at = clock.now() + std::chrono::milliseconds(1000 + random_bits() % static_cast<uint64_t>(within));
    expect(co_await schedule.put({.id = fmt::format("bench-{}", i), .kind = "bench", .at = at, .payload = ""}));
  }
}

// Five hundred in a second.
void fire_timers(store::Store& store, const Clock& clock, bool alone, double seconds) {
  schedule::Schedule::Options options{.table = "bench-timers"};
  if (alone) options.busy_poll = options.poll = std::chrono::hours{1};
  schedule::Schedule schedule(store, clock, options);
  const int count = static_cast<int>(500 * seconds);
  std::vector<double> late;
  boost::asio::io_context context(1);
  schedule.on("bench", [&](const schedule::Firing& firing) -> awaitable<void> {
    late.push_back(std::chrono::duration<double, std::milli>(clock.now() - firing.timer.at).count());
    if (static_cast<int>(late.size()) == count) schedule.stop();
    co_return;
  });
  run(context, schedule.run());
  for (int i = 0; i < 16; ++i)
    run(context, set_timers(schedule, clock, i, 16, count, static_cast<int>(seconds * 1000)));
  context.run();
  std::ranges::sort(late);
  fmt::print("{:.1f} {:.1f} {:.1f}\n", late[late.size() / 2], late[late.size() * 99 / 100], late.back());
}

std::unique_ptr<store::Store> open(const std::string& name, const Clock& clock) {
  if (name.starts_with("embedded:"))
    return std::make_unique<engine::Engine>(engine::Engine::Options{.folder = name.substr(9)}, clock);
  remote::RemoteOptions options;
  options.calls.endpoint = remote::parse_endpoint(name, "us-east-1").value();
  options.calls.credentials.given = remote::Credentials{.access_key = "bench", .secret_key = "secret"};
  return std::make_unique<remote::RemoteStore>(std::move(options), clock);
}

}  // namespace
}  // namespace tabella

int main(int argc, char** argv) try {
  using namespace tabella;
  if (argc < 3) return 2;
  const SystemClock clock;
  const auto store = open(argv[1], clock);
  const std::string operation = argv[2];
  boost::asio::io_context context(1);
  if (operation == "prepare") {
    run(context, prepare(*store));
    context.run();
    return 0;
  }
  const auto seconds = std::chrono::duration<double>(std::stod(argv[3]));
  if (operation == "timers") {
    fire_timers(*store, clock, std::string(argv[1]).starts_with("embedded:"), std::stod(argv[3]));
    return 0;
  }
  const auto begun = SteadyClock::now();
  const auto until = begun + std::chrono::duration_cast<SteadyClock::duration>(seconds);
  int64_t count = 0;
  for (int i = 0; i < kAtOnce; ++i) run(context, repeat(*store, operation, until, count));
  context.run();
  const std::chrono::duration<double> took = SteadyClock::now() - begun;
  fmt::print("{:.0f}\n", static_cast<double>(count) / took.count());
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "store_bench: {}\n", error.what());
  return 1;
}

// The journal in process, over an engine of its own: the C++ side of ./bench journal. Prints its figures as
// JSON.
//
//   journal_in_process FOLDER append SECONDS BATCH   64 coroutines on one thread append to a thousand
//   entities journal_in_process FOLDER replay EVENTS ROUNDS   one entity with so many events is read, again
//   and again
#include <sys/resource.h>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/engine.h"
#include "journal/heads.h"
#include "journal/journal.h"
#include "journal/layout.h"
#include "journal/replay.h"
#include "store/tables.h"

namespace tabella {
namespace {

using boost::asio::awaitable;
using SteadyClock = std::chrono::steady_clock;

constexpr int kAtOnce = 64;
constexpr uint64_t kEntities = 1000;
constexpr uint64_t kLoadBatch = 1000;
constexpr const char* kReplayed = "replayed";

template <class T>
T expect(store::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double seconds_since(SteadyClock::time_point begun) {
  return std::chrono::duration<double>(SteadyClock::now() - begun).count();
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// As benchmarks/journal.py has it, of 256 bytes.
std::vector<journal::NewEvent> events(uint64_t count) {
  journal::NewEvent event{.payload = R"({"amount":1250,"currency":"EUR","reference":")", .is_json = true};
  event.payload += std::string(256 - event.payload.size() - 2, 'x') + R"("})";
  return std::vector(count, event);
}

awaitable<uint64_t> append(journal::Journal& journal, std::string pid, uint64_t batch) {
  journal::Append append{.entity = {"bench", std::move(pid)}, .events = events(batch)};
  const auto outcome = expect(co_await journal.append(std::move(append)));
  if (!std::holds_alternative<journal::Appended>(outcome)) throw std::runtime_error("an append was refused");
  co_return std::get<journal::Appended>(outcome).last;
}

// Each coroutine has entities of its own, as each connection of a program with one writer for an entity does.
awaitable<void> keep_appending(journal::Journal& journal, uint64_t coroutine, uint64_t batch,
                               SteadyClock::time_point until, uint64_t& appended) {
  while (SteadyClock::now() < until) {
    const auto entity = coroutine + kAtOnce * (random_bits() % (kEntities / kAtOnce));
    co_await append(journal, fmt::format("account-{:012}", entity), batch);
    appended += batch;
  }
}

awaitable<void> fill(journal::Journal& journal, uint64_t count) {
  const auto extent = expect(co_await journal.extent({"bench", kReplayed}));
  for (auto there = extent.highest; there < count;)
    there = co_await append(journal, kReplayed, std::min(kLoadBatch, count - there));
}

awaitable<void> replay(const journal::Journal& journal, uint64_t count, uint64_t& bytes) {
  auto replay = journal.replay({"bench", kReplayed}, {});
  for (uint64_t next = 1;;) {
    const auto step = expect(co_await replay.next());
    if (step.empty()) {
      if (next != count + 1) throw std::runtime_error(fmt::format("the replay ended before {}", next));
      co_return;
    }
    for (const auto& event : step) {
      if (event.number() != next++) throw std::runtime_error("an event is out of order");
      bytes += event.payload().size();
    }
  }
}

void spawn(boost::asio::io_context& context, awaitable<void> work) {
  boost::asio::co_spawn(context, std::move(work), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

void run(awaitable<void> work) {
  boost::asio::io_context context(1);
  spawn(context, std::move(work));
  context.run();
}

void measure_appends(journal::Journal& journal, double seconds, uint64_t batch) {
  boost::asio::io_context context(1);
  const auto begun = SteadyClock::now();
  const auto until =
      begun + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
  const auto processor = processor_seconds();
  uint64_t appended = 0;
  for (uint64_t i = 0; i < kAtOnce; ++i) spawn(context, keep_appending(journal, i, batch, until, appended));
  context.run();
  fmt::print(R"({{"events":{},"seconds":{:.3f},"processor_seconds":{:.3f}}})"
             "\n",
             appended, seconds_since(begun), processor_seconds() - processor);
}

void measure_replay(journal::Journal& journal, uint64_t count, int rounds) {
  run(fill(journal, count));
  std::vector<double> took;
  uint64_t bytes = 0;
  const auto processor = processor_seconds();
  for (int i = 0; i < rounds; ++i) {
    const auto begun = SteadyClock::now();
    run(replay(journal, count, bytes));
    took.push_back(seconds_since(begun));
  }
  fmt::print(R"({{"events":{},"bytes":{},"seconds":[{:.4f}],"processor_seconds":{:.3f}}})"
             "\n",
             count, bytes, fmt::join(took, ","), processor_seconds() - processor);
}

}  // namespace
}  // namespace tabella

int main(int argc, char** argv) try {
  using namespace tabella;
  if (argc != 5) {
    fmt::print(stderr,
               "usage: journal_in_process FOLDER append SECONDS BATCH | FOLDER replay EVENTS ROUNDS\n");
    return 2;
  }
  const SystemClock clock;
  engine::Engine engine({.folder = argv[1]}, clock);
  const auto layout = journal::make_blocks_layout({.table = "tabella-journal"});
  journal::Journal journal(engine, clock, *layout, {.heads_table = "tabella-journal-heads"});
  run([](store::Store& store, const journal::Layout& events_layout) -> awaitable<void> {
    expect(co_await store::prepare_tables(
        store, {events_layout.plan(), journal::Heads::plan("tabella-journal-heads")},
        store::Missing::create));
  }(engine, *layout));
  const std::string what = argv[2];
  if (what == "append")
    measure_appends(journal, std::stod(argv[3]), std::stoull(argv[4]));
  else if (what == "replay")
    measure_replay(journal, std::stoull(argv[3]), std::stoi(argv[4]));
  else
    throw std::runtime_error("there is no " + what);
  engine.close();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "journal_in_process: {}\n", error.what());
  return 1;
}

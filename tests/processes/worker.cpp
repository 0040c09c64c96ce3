// One of several processes that share a stream or a schedule over one endpoint. Whatever it handles is a line
// in a log that they all append to. Made to be killed at any moment; test_processes.py does that.
//
//   worker consume URL LOG     handles the stream of the table "items": "item version"
//   worker fire URL LOG        handles timers: "begin id attempt pid", and when it is done "end id attempt
//   pid" worker set URL COUNT MS    sets so many timers, due within so many milliseconds from now, and ends
#include <fcntl.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ids.h"
#include "item/number.h"
#include "remote/remote_store.h"
#include "schedule/schedule.h"
#include "store/stream_reader.h"

namespace tabella {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;

remote::RemoteOptions options_for(const std::string& url) {
  remote::RemoteOptions options;
  options.calls.endpoint = *remote::parse_endpoint(url, "us-east-1");
  options.calls.credentials.given = remote::Credentials{.access_key = "processes", .secret_key = "secret"};
  options.calls.retry.longest_pause = milliseconds{200};
  options.calls.retry.attempts = 1000;
  options.calls.retry.quota = 1'000'000;
  options.stream_poll = milliseconds{20};
  return options;
}

class Log {
 public:
  explicit Log(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_APPEND, 0644)) {}
  void write(const std::string& line) const {
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }

 private:
  const int file_;
};

void run(awaitable<void> work) {
  boost::asio::io_context context(1);
  boost::asio::co_spawn(context, std::move(work), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  std::puts("running");
  std::fflush(stdout);
  context.run();
}

void consume(store::Store& store, const Clock& clock, const Log& log) {
  store::StreamReader reader(
      store, clock, {.table = "items", .consumer = "processes", .lease = milliseconds{1000}, .batch = 20},
      [&](const store::StreamRecord& record) -> awaitable<void> {
        const auto& image = *record.new_image;
        log.write(fmt::format("{} {}\n", image.find("pk")->content(),
                              item::number_to_int(image.find("v")->content()).value_or(0)));
        co_return;
      });
  run(reader.run());
}

schedule::Schedule::Options schedule_options() {
  return {.table = "timers", .lease = milliseconds{3000}, .poll = milliseconds{200}};
}

void fire(store::Store& store, const Clock& clock, const Log& log) {
  schedule::Schedule schedule(store, clock, schedule_options());
  schedule.on("test", [&](const schedule::Firing& firing) -> awaitable<void> {
    const auto line = fmt::format("{} {} {}\n", firing.timer.id, firing.attempt, getpid());
    log.write("begin " + line);
    boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor,
                                    milliseconds(random_bits() % 20));
    co_await pause.async_wait(boost::asio::use_awaitable);
    log.write("end " + line);
  });
  run(schedule.run());
}

awaitable<void> set_some(schedule::Schedule& schedule, const Clock& clock, int first, int step, int count,
                         int within) {
  for (int i = first; i < count; i += step) {
    const auto at = clock.now() + milliseconds(random_bits() % static_cast<uint64_t>(within));
    const auto set =
        co_await schedule.put({.id = fmt::format("t{}", i), .kind = "test", .at = at, .payload = ""});
    if (!set) throw std::runtime_error(set.error().message);
  }
}

void set(store::Store& store, const Clock& clock, int count, int within) {
  schedule::Schedule schedule(store, clock, schedule_options());
  boost::asio::io_context context(1);
  constexpr int kAtOnce = 32;
  for (int i = 0; i < kAtOnce; ++i)
    boost::asio::co_spawn(context, set_some(schedule, clock, i, kAtOnce, count, within),
                          [](std::exception_ptr failure) {
                            if (failure) std::rethrow_exception(failure);
                          });
  context.run();
}

}  // namespace
}  // namespace tabella

int main(int argc, char** argv) {
  using namespace tabella;
  if (argc < 4) return 2;
  const std::string mode = argv[1];
  const SystemClock clock;
  remote::RemoteStore store(options_for(argv[2]), clock);
  if (mode == "consume") consume(store, clock, Log(argv[3]));
  if (mode == "fire") fire(store, clock, Log(argv[3]));
  if (mode == "set" && argc == 5) set(store, clock, std::atoi(argv[3]), std::atoi(argv[4]));
  return 0;
}

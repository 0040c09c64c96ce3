#include "house/house.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "base/log.h"
#include "store/leases.h"

namespace tabella::house {

namespace asio = boost::asio;

namespace {

std::string consumers_of(const std::string& prefix) { return prefix + "tabella-consumers"; }
std::string timers_table(const std::string& prefix) { return prefix + "tabella-timers"; }

schedule::Schedule::Options timer_options(const Foundation& foundation) {
  schedule::Schedule::Options options;
  options.table = timers_table(foundation.table_prefix);
  // Alone on the store, its own timers wake it.
  if (!foundation.shared) {
    options.busy_poll = options.poll = std::chrono::seconds{30};
    options.set_late = std::chrono::milliseconds{0};
    options.with_store = kWithStore;
  }
  return options;
}

}  // namespace

std::vector<store::TablePlan> House::tables(const std::string& prefix) {
  return {store::Leases::plan(consumers_of(prefix)), schedule::plan(timers_table(prefix))};
}

House::House(Foundation foundation)
    : Foundation(std::move(foundation)), schedule_(store, clock, timer_options(*this)) {}

House::~House() { stop(std::chrono::milliseconds{0}); }

void Worker::run(std::function<asio::awaitable<void>()> work) {
  // The function is kept for as long as its coroutine, which borrows what it has captured.
  auto keep = [](std::function<asio::awaitable<void>()> kept) -> asio::awaitable<void> { co_await kept(); };
  running_.push_back(asio::co_spawn(thread_.at(0), keep(std::move(work)), asio::use_future));
}

void Worker::end(std::chrono::steady_clock::time_point until) {
  for (auto& running : running_) {
    if (running.wait_until(until) != std::future_status::ready) continue;
    try {
      running.get();
    } catch (const std::exception& error) {
      log::error("work in the background has ended early: {}", error.what());
    }
  }
  running_.clear();
  thread_.stop();
}

std::string House::consumers_table() const { return consumers_of(table_prefix); }

void House::begin() {
  begun_ = true;
  timers_.run([this] { return schedule_.run(); });
  for (auto& reader : readers_) streams_.run([&reader] { return reader.run(); });
}

void House::stop(std::chrono::milliseconds grace) {
  if (begun_) {
    asio::post(timers_.executor(), [this] { schedule_.stop(); });
    for (auto& reader : readers_) asio::post(streams_.executor(), [&reader] { reader.stop(); });
    begun_ = false;
  }
  const auto until = std::chrono::steady_clock::now() + grace;
  timers_.end(until);
  streams_.end(until);
  for (auto& worker : background_) worker.end(until);
}

}  // namespace tabella::house

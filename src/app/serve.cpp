#include "app/serve.h"

#include <sys/resource.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>
#include <ranges>
#include <thread>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "access/table.h"
#include "app/dynamodb_port.h"
#include "app/http_port.h"
#include "app/open_store.h"
#include "app/stop_deadline.h"
#include "base/log.h"
#include "house/house.h"

namespace tabella::app {
namespace {

// How the process's file descriptors are shared out. Connections cannot use up those of the store: without a
// descriptor it could not begin a new log, and would refuse writes.
struct Descriptors {
  int for_store = 0;  // -1: as many as it wants
  size_t for_connections = 0;
};

// The usual soft limit of 1024 is soon reached: the hard one counts.
Descriptors share_descriptors() {
  constexpr size_t kForTheRest = 64;  // logs, clients, the console's files
  constexpr size_t kPlenty = 65536;
  rlimit limit{.rlim_cur = 1024, .rlim_max = 1024};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  const auto all = std::min<size_t>(limit.rlim_cur, 1u << 20);
  const auto for_store = std::max(all / 4, kForTheRest);
  const auto taken = for_store + kForTheRest;
  return {.for_store = all >= kPlenty ? -1 : static_cast<int>(for_store),
          .for_connections = all > taken + kForTheRest ? all - taken : kForTheRest};
}

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

void wait_for_stop() {
  int received = 0;
  const auto signals = stop_signals();
  sigwait(&signals, &received);
  log::info("stopping: finishing requests under way");
}

// Waits for a coroutine from a thread that has nothing else to do. Nothing if it was told to stop meanwhile.
template <class T>
std::optional<T> wait_for(net::IoThreads& threads, boost::asio::awaitable<T> work) {
  auto result = boost::asio::co_spawn(threads.at(0), std::move(work), boost::asio::use_future);
  const auto signals = stop_signals();
  const timespec at_once{};
  while (result.wait_for(std::chrono::milliseconds{50}) != std::future_status::ready)
    if (sigtimedwait(&signals, nullptr, &at_once) > 0) return std::nullopt;
  return result.get();
}

// Those that were asked for. A process that serves no HTTP leaves those without ports of their own to others.
house::Systems choose(house::Systems all, const ServeOptions& options) {
  std::erase_if(all, [&](const auto& system) {
    const bool wanted = std::ranges::find(options.systems, system->name()) != options.systems.end();
    return !wanted || !(options.http || system->listens());
  });
  return all;
}

// The tables of the process: none, if there is nothing that would use them.
std::vector<store::TablePlan> tables_of(const house::Systems& systems, const ServeOptions& options) {
  if (systems.empty() && !options.http && !options.store.remote) return {};
  const auto& prefix = options.store.table_prefix;
  auto plans = house::House::tables(prefix);
  plans.push_back(access::plan(access_table(prefix)));
  for (const auto& system : systems)
    for (auto& plan : system->tables(prefix)) plans.push_back(std::move(plan));
  return plans;
}

std::set<std::string> names_of(const std::vector<store::TablePlan>& plans) {
  std::set<std::string> names;
  for (const auto& plan : plans) names.insert(plan.definition.name);
  return names;
}

access::Secrets secrets_of(const ServeOptions& options) {
  if (!options.secret_key_file.empty()) return access::Secrets::from_file(options.secret_key_file, false);
  // Processes that share a store must share the key: nobody makes one of his own.
  if (options.store.remote) return {};
  return access::Secrets::from_file(options.store.data / access::kSecretKey, true);
}

net::Outbound::Options outbound_options(const ServeOptions& options) {
  // Behind a proxy others come in, and what listens on this machine alone is none of theirs.
  const bool development = (!options.http || is_loopback(*options.http)) && options.allowed_hosts.empty();
  return {.rules = {.allowed = options.outbound_allowed, .loopback = development},
          .proxy = options.outbound_proxy};
}

size_t work_threads() { return std::max(2u, std::thread::hardware_concurrency() / 2); }

// Everything that serves, in the order in which one needs the other.
class Process {
 public:
  Process(const ServeOptions& options, house::Systems systems)
      : options_(options),
        limits_(descriptors_.for_connections, options.memory),
        store_(open()),
        systems_(choose(std::move(systems), options)),
        tables_(tables_of(systems_, options)),
        threads_(options.threads) {
    if (!options.store.remote)
      dynamodb_.emplace(options, *store_, clock_, long_work_, names_of(tables_), threads_, limits_);
  }

  // Makes what is missing of the tables, or says so. False: it was told to stop meanwhile.
  bool prepare();
  void start();
  void announce();
  void stop();

 private:
  std::unique_ptr<OpenStore> open() const {
    if (options_.store.remote) return open_remote(*options_.store.remote, clock_);
    return open_embedded(options_.store.data,
                         {.durability = options_.durability,
                          .max_open_files = descriptors_.for_store,
                          .min_free = options_.min_free,
                          .long_work = long_work_},
                         clock_);
  }
  void write_metrics(metrics::Exposition& out) const;

  const ServeOptions& options_;
  const SystemClock clock_;
  const Descriptors descriptors_ = share_descriptors();
  net::Limits limits_;
  net::WorkThreads work_{work_threads()};
  const store::LongWork long_work_{work_.executor()};
  const std::unique_ptr<OpenStore> store_;
  std::optional<access::Secrets> secrets_;  // these three once the tables are there
  std::optional<net::Outbound> outbound_;
  std::optional<house::House> house_;
  const house::Systems systems_;  // the house outlives them
  const std::vector<store::TablePlan> tables_;
  net::IoThreads threads_;
  std::optional<DynamoDbPort> dynamodb_;  // of the embedded store

  std::optional<HttpPort> http_;  // once the tables are there
  size_t started_ = 0;            // systems
};

bool Process::prepare() {
  if (tables_.empty()) return true;
  const bool elsewhere = options_.store.remote.has_value();
  if (elsewhere) log::info("looking for the tables at {}", store_->place());
  const bool create = options_.create_tables || !elsewhere;
  const auto prepared =
      wait_for(threads_, store::prepare_tables(store_->store(), tables_,
                                               create ? store::Missing::create : store::Missing::refuse));
  if (!prepared) return false;
  if (*prepared) return true;
  const auto& error = prepared->error();
  const bool can_be_made = error.code == store::ErrorCode::resource_not_found && !create;
  throw std::runtime_error(fmt::format("the store at {}: {}{}", store_->place(), error.message,
                                       can_be_made ? "; --create-tables makes what is missing" : ""));
}

void Process::start() {
  secrets_.emplace(systems_.empty() ? access::Secrets() : secrets_of(options_));
  outbound_.emplace(outbound_options(options_));
  house_.emplace(house::Foundation{.store = store_->store(),
                                   .clock = clock_,
                                   .io = threads_,
                                   .long_work = long_work_,
                                   .limits = limits_,
                                   .outbound = *outbound_,
                                   .secrets = *secrets_,
                                   .hostname = options_.hostname,
                                   .web_path = options_.web_path,
                                   .web_url = web_url(options_),
                                   .table_prefix = options_.store.table_prefix,
                                   .shared = store_->shared()});
  http_.emplace(options_, *store_, clock_, systems_,
                [this](metrics::Exposition& out) { write_metrics(out); });
  for (const auto& system : systems_) {
    ++started_;  // also if it fails on the way: what it has begun is to be ended
    system->start(*house_);
  }
  if (!tables_.empty()) house_->begin();
  http_->listen(threads_, limits_);
}

void Process::announce() {
  std::vector<std::string> lines;
  const auto add = [&](std::vector<std::string> more) {
    for (auto& line : more) lines.push_back(std::move(line));
  };
  if (dynamodb_) add(dynamodb_->announce());
  if (options_.store.remote)
    lines.push_back(fmt::format("Tabella uses the DynamoDB at {} (region {})", store_->place(),
                                options_.store.remote->endpoint.region));
  for (const auto& system : systems_) add(system->announce());
  add(http_->announce(threads_));
  for (const auto& line : lines) fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Process::stop() {
  const StopDeadline deadline(options_.stop_timeout);
  const auto started = systems_ | std::views::take(started_);
  for (const auto& system : started) system->stop_waiting();
  if (dynamodb_) dynamodb_->stop(deadline.grace());
  if (http_) http_->stop(deadline.grace());
  for (const auto& system : started) system->stop(deadline.grace());
  if (house_) house_->stop(std::min<std::chrono::milliseconds>(deadline.grace(), std::chrono::seconds{5}));
  threads_.stop();
  work_.stop();
  store_->close();
}

void Process::write_metrics(metrics::Exposition& out) const {
  out.gauge("tabella_connections", "Connections that are open",
            static_cast<double>(limits_.connections.load()));
  out.gauge("tabella_request_memory_bytes", "What large requests and answers under way take",
            static_cast<double>(limits_.memory_used.load()));
  store_->write_metrics(out);
  if (dynamodb_) dynamodb_->write_metrics(out);
  house_->write_metrics(out);
  for (const auto& system : systems_) system->write_metrics(out);
}

}  // namespace

int serve(const ServeOptions& options, house::Systems systems) {
  log::set_level(options.log_level);
  log::set_format(options.log_format);
  std::signal(SIGPIPE, SIG_IGN);
  // Blocked before any thread starts, so that sigwait() is where they arrive.
  const auto signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    Process process(options, std::move(systems));
    // Once the port is ours: a mistake should not leave tables behind.
    try {
      if (process.prepare()) {
        process.start();
        process.announce();
        wait_for_stop();
      }
    } catch (...) {
      process.stop();
      throw;
    }
    process.stop();
    log::info("stopped");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 1;
  }
}

}  // namespace tabella::app

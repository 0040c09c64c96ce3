#include "app/serve.h"

#include <sys/resource.h>
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/http.h"
#include "app/mail.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "net/server.h"
#include "remote/remote_store.h"
#include "schedule/schedule.h"
#include "store/leases.h"
#include "wire/door.h"

namespace tabella::app {
namespace {

// The end of a stop, which is one for all that has to end; whatever hangs then is left.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds timeout)
      : begun_(std::chrono::steady_clock::now()), until_(begun_ + timeout), watch_([this] { watch(); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    watch_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // What requests under way still have: all together three quarters of it; the rest is for the store.
  std::chrono::milliseconds grace() const {
    using std::chrono::milliseconds;
    const auto end = begun_ + (until_ - begun_) * 3 / 4;
    return std::max(milliseconds(0),
                    std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()));
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (wake_.wait_until(lock, until_, [this] { return done_; })) return;
    log::warning("not everything came to its end in time; what was acknowledged is on disk");
    std::_Exit(0);
  }

  const std::chrono::steady_clock::time_point begun_;
  const std::chrono::steady_clock::time_point until_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;  // guarded by mutex_
  std::thread watch_;  // last: uses all of the above
};

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

bool wants_mail(const ServeOptions& options, const mail::Options& mail) {
  return options.http || mail.smtp || mail.smtps;
}

// Mail, if it can be sent or looked at; a process that only serves the tables leaves it to others.
std::unique_ptr<MailSide> make_mail(store::Store& store, const Clock& clock, const ServeOptions& options,
                                    const mail::Options& mail, net::IoThreads& threads, net::Limits& limits) {
  if (!wants_mail(options, mail)) return nullptr;
  return std::make_unique<MailSide>(store, clock, options, mail, threads, limits);
}

// A server that only this machine can reach is called by this machine's names; for another the user answers.
net::KnownHosts hosts_of(const ServeOptions& options, const Address& address) {
  const bool loopback =
      address.host.starts_with("127.") || address.host == "localhost" || address.host == "::1";
  if (!loopback) return {};
  auto names = options.allowed_hosts;
  names.push_back(options.hostname);
  return net::KnownHosts(std::move(names));
}

HttpDoor::Guard guard_of(const ServeOptions& options) {
  return {.auth_file = options.auth_file,
          .hosts = options.http ? hosts_of(options, *options.http) : net::KnownHosts()};
}

size_t work_threads() { return std::max(2u, std::thread::hardware_concurrency() / 2); }

void write_metrics(const net::Limits& limits, metrics::Exposition& out) {
  out.gauge("tabella_connections", "Connections that are open",
            static_cast<double>(limits.connections.load()));
  out.gauge("tabella_request_memory_bytes", "What large requests and answers under way take",
            static_cast<double>(limits.memory_used.load()));
}

// Serves mail's page and API, /metrics and /healthz, if it is asked to.
class HttpSide {
 public:
  HttpSide(net::IoThreads& threads, net::Limits& limits, const ServeOptions& options, MailSide* mail,
           HttpDoor::WriteMetrics metrics, HttpDoor::Ailment ailment)
      : mail_(mail),
        path_(options.web_path),
        door_(
            std::move(metrics), std::move(ailment),
            [mail](const net::HttpRequest& request, net::HttpResponse& response) {
              return mail->api().handle(request, response);
            },
            guard_of(options)) {
    const auto& address = options.http;
    if (!address) return;
    server_.emplace(
        threads,
        net::ServerOptions{
            .host = address->host, .port = address->port, .tls = options.http_tls, .limits = &limits},
        [this](const net::HttpRequest& request, net::HttpResponse& response) {
          return door_.handle(request, response);
        });
    address_ = fmt::format("{}://{}", options.http_tls ? "https" : "http",
                           to_text(Address{address->host, server_->port()}));
  }

  void announce() const {
    if (mail_) mail_->announce();
    if (server_)
      fmt::print("Page and API on {}{}/, metrics and health on /metrics and /healthz\n", address_, path_);
    std::fflush(stdout);
  }
  void stop(const Deadline& deadline) {
    if (mail_) mail_->stop_waiting();
    if (server_) server_->stop(deadline.grace());
    if (mail_) mail_->stop(deadline.grace());
  }

 private:
  MailSide* const mail_;
  const std::string path_;
  HttpDoor door_;
  std::optional<net::HttpServer> server_;
  std::string address_;
};

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

std::string name_of(const remote::Endpoint& endpoint) {
  return fmt::format("{}://{}", endpoint.items.tls ? "https" : "http", endpoint.items.authority());
}

// The tables that this process uses.
std::vector<store::TablePlan> plans(const ServeOptions& options) {
  auto plans = MailSide::plans(options.store.table_prefix);
  plans.push_back(store::Leases::plan(options.store.table_prefix + "tabella-consumers"));
  plans.push_back(schedule::plan(options.store.table_prefix + "tabella-timers"));
  return plans;
}

// False if it was told to stop meanwhile.
bool prepare(net::IoThreads& threads, store::Store& store, const ServeOptions& options,
             const mail::Options& mail_options) {
  if (!options.store.remote && !wants_mail(options, mail_options)) return true;
  const auto where =
      options.store.remote ? name_of(options.store.remote->endpoint) : options.store.data.string();
  if (options.store.remote) log::info("looking for the tables at {}", where);
  const bool create = options.create_tables || !options.store.remote;
  const auto prepared = wait_for(
      threads,
      store::prepare_tables(store, plans(options), create ? store::Missing::create : store::Missing::refuse));
  if (!prepared) return false;
  if (*prepared) return true;
  const auto& error = prepared->error();
  const bool can_be_made = error.code == store::ErrorCode::resource_not_found && !create;
  throw std::runtime_error(fmt::format("the store at {}: {}{}", where, error.message,
                                       can_be_made ? "; --create-tables makes what is missing" : ""));
}

void serve_embedded(const ServeOptions& options, const mail::Options& mail_options) {
  const SystemClock clock;
  const auto descriptors = share_descriptors();
  net::Limits limits(descriptors.for_connections, options.memory);
  net::WorkThreads work(work_threads());
  const store::LongWork long_work(work.executor());
  engine::Engine store({.folder = options.store.data,
                        .durability = options.durability,
                        .max_open_files = descriptors.for_store,
                        .min_free = options.min_free,
                        .long_work = long_work},
                       clock);
  wire::Door door(store, clock,
                  {.access_keys = options.access_keys,
                   .hosts = hosts_of(options, options.dynamodb),
                   .cors_origin = options.cors_origin,
                   .problem = [&] { return store.problem(); },
                   .long_work = long_work});
  net::IoThreads threads(options.threads);
  net::HttpServer server(threads,
                         {.host = options.dynamodb.host,
                          .port = options.dynamodb.port,
                          .tls = options.tls,
                          .max_body = wire::kMaxBody,
                          .limits = &limits},
                         [&](const net::HttpRequest& request, net::HttpResponse& response) {
                           return door.handle(request, response);
                         });
  // Once the port is ours: a mistake should not leave tables behind.
  if (!prepare(threads, store, options, mail_options)) {
    const Deadline deadline(options.stop_timeout);
    server.stop(deadline.grace());
    threads.stop();
    work.stop();
    return store.close();
  }
  const auto mail = make_mail(store, clock, options, mail_options, threads, limits);
  HttpSide http(
      threads, limits, options, mail.get(),
      [&](metrics::Exposition& out) {
        write_metrics(limits, out);
        store.write_metrics(out);
        door.write_metrics(out);
        if (mail) mail->write_metrics(out);
      },
      [&]() -> boost::asio::awaitable<std::string> { co_return store.problem(); });
  fmt::print("Tabella serves DynamoDB on {}://{}:{} (data in {}, {})\n", options.tls ? "https" : "http",
             options.dynamodb.host, server.port(), options.store.data.string(),
             options.durability == engine::Durability::sync ? "durable" : "relaxed durability");
  http.announce();
  wait_for_stop();
  const Deadline deadline(options.stop_timeout);
  server.stop(deadline.grace());
  http.stop(deadline);
  threads.stop();
  work.stop();
  store.close();
}

void serve_remote(const ServeOptions& options, const mail::Options& mail_options) {
  const SystemClock clock;
  net::Limits limits(share_descriptors().for_connections, options.memory);
  remote::RemoteOptions remote_options;
  remote_options.calls.endpoint = options.store.remote->endpoint;
  remote_options.calls.credentials = options.store.remote->credentials;
  remote_options.calls.connections.ca_file = options.store.remote->ca_file;
  remote::RemoteStore store(std::move(remote_options), clock);
  net::IoThreads threads(options.threads);
  if (!prepare(threads, store, options, mail_options)) return threads.stop();
  const auto mail = make_mail(store, clock, options, mail_options, threads, limits);
  HttpSide http(
      threads, limits, options, mail.get(),
      [&](metrics::Exposition& out) {
        write_metrics(limits, out);
        store.write_metrics(out);
        if (mail) mail->write_metrics(out);
      },
      [&]() -> boost::asio::awaitable<std::string> {
        const auto answered = co_await store.ping(std::chrono::seconds{2});
        co_return answered ? "" : "the store does not answer: " + answered.error().message;
      });
  fmt::print("Tabella uses the DynamoDB at {} (region {})\n", name_of(options.store.remote->endpoint),
             options.store.remote->endpoint.region);
  http.announce();
  wait_for_stop();
  const Deadline deadline(options.stop_timeout);
  http.stop(deadline);
  threads.stop();
}

}  // namespace

int serve(const ServeOptions& options, const mail::Options& mail) {
  log::set_level(options.log_level);
  log::set_format(options.log_format);
  std::signal(SIGPIPE, SIG_IGN);
  // Blocked before any thread starts, so that sigwait() is where they arrive.
  const auto signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    if (options.store.remote)
      serve_remote(options, mail);
    else
      serve_embedded(options, mail);
    log::info("stopped");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 1;
  }
}

}  // namespace tabella::app

#include "app/serve.h"

#include <sys/resource.h>
#include <csignal>
#include <cstdio>
#include <future>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/http.h"
#include "app/mail.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "remote/remote_store.h"
#include "schedule/schedule.h"
#include "store/leases.h"
#include "wire/door.h"

namespace tabella::app {
namespace {

constexpr std::chrono::seconds kGrace{10};

// Every connection takes a descriptor; the usual soft limit of 1024 is soon reached.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
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

bool wants_mail(const ServeOptions& options) {
  return options.http || options.mail.smtp || options.mail.smtps;
}

// Mail, if it can be sent or looked at; a process that only serves the tables leaves it to others.
std::unique_ptr<MailSide> make_mail(store::Store& store, const Clock& clock, const ServeOptions& options,
                                    net::IoThreads& threads) {
  if (!wants_mail(options)) return nullptr;
  return std::make_unique<MailSide>(store, clock, options, threads, options.remote.has_value());
}

HttpDoor::Guard guard_of(const ServeOptions& options) {
  HttpDoor::Guard guard{.auth_file = options.auth_file, .hosts = {}};
  const bool loopback = options.http && (options.http->host.starts_with("127.") ||
                                         options.http->host == "localhost" || options.http->host == "::1");
  if (loopback) {
    guard.hosts = options.allowed_hosts;
    guard.hosts->push_back(options.mail.hostname);
  }
  return guard;
}

// Serves mail's page and API, /metrics and /healthz, if it is asked to.
class HttpSide {
 public:
  HttpSide(net::IoThreads& threads, const ServeOptions& options, MailSide* mail,
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
    server_.emplace(threads, net::ServerOptions{.host = address->host, .port = address->port},
                    [this](const net::HttpRequest& request, net::HttpResponse& response) {
                      return door_.handle(request, response);
                    });
    address_ = fmt::format("{}:{}", address->host, server_->port());
  }

  void announce() const {
    if (mail_) mail_->announce();
    if (server_)
      fmt::print("Page and API on http://{}{}/, metrics and health on /metrics and /healthz\n", address_,
                 path_);
    std::fflush(stdout);
  }
  void stop() {
    if (mail_) mail_->stop_waiting();
    if (server_) server_->stop(kGrace);
    if (mail_) mail_->stop(kGrace);
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
  auto plans = MailSide::plans(options);
  plans.push_back(store::Leases::plan(options.table_prefix + "tabella-consumers"));
  plans.push_back(schedule::plan(options.table_prefix + "tabella-timers"));
  return plans;
}

// False if it was told to stop meanwhile.
bool prepare(net::IoThreads& threads, store::Store& store, const ServeOptions& options) {
  if (!options.remote && !wants_mail(options)) return true;
  const auto where = options.remote ? name_of(options.remote->endpoint) : options.data.string();
  if (options.remote) log::info("looking for the tables at {}", where);
  const bool create = options.create_tables || !options.remote;
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

void serve_embedded(const ServeOptions& options) {
  const SystemClock clock;
  engine::Engine store({.folder = options.data, .durability = options.durability}, clock);
  wire::Door door(store, clock, options.access_keys);
  net::IoThreads threads(options.threads);
  net::HttpServer server(threads,
                         {.host = options.dynamodb.host,
                          .port = options.dynamodb.port,
                          .tls = options.tls,
                          .max_body = wire::kMaxBody},
                         [&](const net::HttpRequest& request, net::HttpResponse& response) {
                           return door.handle(request, response);
                         });
  // Once the port is ours: a mistake should not leave tables behind.
  if (!prepare(threads, store, options)) return server.stop(kGrace);
  const auto mail = make_mail(store, clock, options, threads);
  HttpSide http(
      threads, options, mail.get(),
      [&](metrics::Exposition& out) {
        store.write_metrics(out);
        door.write_metrics(out);
        if (mail) mail->write_metrics(out);
      },
      [&]() -> boost::asio::awaitable<std::string> {
        co_return store.healthy() ? "" : "a commit failed: nothing is written any more; see the log";
      });
  fmt::print("Tabella serves DynamoDB on {}://{}:{} (data in {}, {})\n", options.tls ? "https" : "http",
             options.dynamodb.host, server.port(), options.data.string(),
             options.durability == engine::Durability::sync ? "durable" : "relaxed durability");
  http.announce();
  wait_for_stop();
  server.stop(kGrace);
  http.stop();
  threads.stop();
  store.close();
}

void serve_remote(const ServeOptions& options) {
  const SystemClock clock;
  remote::RemoteOptions remote_options;
  remote_options.calls.endpoint = options.remote->endpoint;
  remote_options.calls.credentials = options.remote->credentials;
  remote_options.calls.connections.ca_file = options.remote->ca_file;
  remote::RemoteStore store(std::move(remote_options), clock);
  net::IoThreads threads(options.threads);
  if (!prepare(threads, store, options)) return threads.stop();
  const auto mail = make_mail(store, clock, options, threads);
  HttpSide http(
      threads, options, mail.get(),
      [&](metrics::Exposition& out) {
        store.write_metrics(out);
        if (mail) mail->write_metrics(out);
      },
      [&]() -> boost::asio::awaitable<std::string> {
        const auto answered = co_await store.ping(std::chrono::seconds{2});
        co_return answered ? "" : "the store does not answer: " + answered.error().message;
      });
  fmt::print("Tabella uses the DynamoDB at {} (region {})\n", name_of(options.remote->endpoint),
             options.remote->endpoint.region);
  http.announce();
  wait_for_stop();
  http.stop();
  threads.stop();
}

}  // namespace

int serve(const ServeOptions& options) {
  log::set_level(options.log_level);
  log::set_format(options.log_format);
  std::signal(SIGPIPE, SIG_IGN);
  // Blocked before any thread starts, so that sigwait() is where they arrive.
  const auto signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  raise_descriptor_limit();
  try {
    if (options.remote)
      serve_remote(options);
    else
      serve_embedded(options);
    log::info("stopped");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 1;
  }
}

}  // namespace tabella::app

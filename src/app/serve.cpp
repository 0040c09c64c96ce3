#include "app/serve.h"

#include <sys/resource.h>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "app/http.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
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

void serve_until_stopped(const ServeOptions& options) {
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
  HttpDoor http_door(store, door);
  std::optional<net::HttpServer> http;
  if (options.http)
    http.emplace(threads, net::ServerOptions{.host = options.http->host, .port = options.http->port},
                 [&](const net::HttpRequest& request, net::HttpResponse& response) {
                   return http_door.handle(request, response);
                 });
  fmt::print("Tabella serves DynamoDB on {}://{}:{} (data in {}, {})\n", options.tls ? "https" : "http",
             options.dynamodb.host, server.port(), options.data.string(),
             options.durability == engine::Durability::sync ? "durable" : "relaxed durability");
  if (http)
    fmt::print("Metrics and health on http://{}:{}/metrics and /healthz\n", options.http->host, http->port());
  std::fflush(stdout);

  int received = 0;
  const auto signals = stop_signals();
  sigwait(&signals, &received);
  log::info("stopping: finishing requests under way");
  server.stop(kGrace);
  if (http) http->stop(kGrace);
  threads.stop();
  store.close();
  log::info("stopped");
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
    serve_until_stopped(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 1;
  }
}

}  // namespace tabella::app

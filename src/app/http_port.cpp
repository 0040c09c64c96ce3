#include "app/http_port.h"

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "access/routes.h"
#include "net/openapi.h"
#include "protocol/sigv4.h"

namespace tabella::app {

using boost::asio::awaitable;

bool is_loopback(const Address& address) {
  return address.host.starts_with("127.") || address.host == "localhost" || address.host == "::1";
}

net::KnownHosts hosts_of(const ServeOptions& options, const Address& address) {
  if (!is_loopback(address)) return {};
  auto names = options.allowed_hosts;
  names.push_back(options.hostname);
  return net::KnownHosts(std::move(names));
}

std::string access_table(const std::string& prefix) { return prefix + "tabella-access"; }

namespace {

net::Router::Options router_options(const ServeOptions& options) {
  return {.web_path = options.web_path,
          .cors_origin = options.cors_origin,
          .hosts = options.http ? hosts_of(options, *options.http) : net::KnownHosts()};
}

// What is wrong with the store or a system; empty: nothing.
awaitable<std::string> find_problem(OpenStore& store, const house::Systems& systems) {
  auto problem = co_await store.problem();
  for (const auto& system : systems) {
    if (!problem.empty()) break;
    problem = system->problem();
    if (!problem.empty()) problem = fmt::format("{}: {}", system->name(), problem);
  }
  co_return problem;
}

}  // namespace

HttpPort::HttpPort(const ServeOptions& options, OpenStore& store, const Clock& clock,
                   const house::Systems& systems, WriteMetrics write_metrics)
    : options_(options),
      store_(store),
      tokens_(store.store(), clock, access_table(options.store.table_prefix)),
      people_(options.auth_file.empty() ? nullptr
                                        : std::make_unique<People>(options.auth_file, store.store(), clock,
                                                                   access_table(options.store.table_prefix))),
      gate_(tokens_, users(), protocol::SignatureVerifier(options.access_keys, clock, "")),
      router_(router_options(options), &gate_) {
  add_own_routes(systems, std::move(write_metrics));
  for (const auto& system : systems) system->add_routes(router_);
}

std::optional<access::Users> HttpPort::users() {
  if (!people_) return std::nullopt;
  return access::Users{.passwords = people_->check, .sessions = people_->sessions};
}

void HttpPort::add_own_routes(const house::Systems& systems, WriteMetrics write_metrics) {
  router_.add({.method = "GET",
               .path = "/healthz",
               .scope = net::kAnybody,
               .summary = "Whether the process can do its work",
               .handler = [this, &systems](net::Call& call) -> awaitable<void> {
                 const auto problem = co_await find_problem(store_, systems);
                 call.response.status = problem.empty() ? 200 : 503;
                 call.response.content_type = "text/plain; charset=utf-8";
                 call.response.body = problem.empty() ? "ok\n" : problem + "\n";
               },
               .answer = "text/plain",
               .at_root = true});
  router_.add({.method = "GET",
               .path = "/metrics",
               .scope = "metrics:read",
               .summary = "What the process counts, for Prometheus",
               .handler = [this, write = std::move(write_metrics)](net::Call& call) -> awaitable<void> {
                 metrics::Exposition exposition;
                 write(exposition);
                 router_.write_metrics(exposition);
                 call.response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                 call.response.body = exposition.text();
                 co_return;
               },
               .answer = "text/plain",
               .at_root = true});
  router_.add({.method = "GET",
               .path = "/openapi.json",
               .scope = net::kAnybody,
               .summary = "What is served over HTTP, as an OpenAPI document",
               .handler = [this](net::Call& call) -> awaitable<void> {
                 call.answer_json() = net::openapi(router_, options_.web_path, TABELLA_VERSION);
                 co_return;
               }});
  access::add_routes(router_, users(), {.web_path = options_.web_path, .tls = options_.http_tls.has_value()});
}

void HttpPort::listen(net::IoThreads& threads, net::Limits& limits) {
  if (!options_.http) return;
  server_.emplace(
      threads,
      net::ServerOptions{.host = options_.http->host,
                         .port = options_.http->port,
                         .tls = options_.http_tls,
                         .body_limit = [this](const net::HttpRequest& r) { return router_.body_limit(r); },
                         .limits = &limits},
      [this](const net::HttpRequest& request, net::HttpResponse& response) {
        return router_.handle(request, response);
      });
}

void HttpPort::stop(std::chrono::milliseconds grace) {
  if (server_) server_->stop(grace);
}

std::vector<std::string> HttpPort::announce(net::IoThreads& threads) {
  if (!server_) return {};
  const auto place = fmt::format("{}:{}", options_.http->host, server_->port());
  std::vector<std::string> lines = {
      fmt::format("Page and API on {}://{}{}/, metrics and health on /metrics and /healthz",
                  options_.http_tls ? "https" : "http", place, options_.web_path)};
  if (is_loopback(*options_.http) || people_) return lines;
  const auto tokens = boost::asio::co_spawn(threads.at(0), tokens_.any(), boost::asio::use_future).get();
  if (tokens && *tokens) return lines;
  lines.push_back(fmt::format(
      "Whoever reaches {} may use all of it: --auth-file or a token (tabella token create) closes it",
      place));
  return lines;
}

std::string web_url(const ServeOptions& options) {
  if (!options.http) return {};
  return fmt::format("{}://{}{}", options.http_tls ? "https" : "http", to_text(*options.http),
                     options.web_path);
}

}  // namespace tabella::app

#include "app/dynamodb_port.h"

#include <fmt/format.h>

#include "app/http_port.h"

namespace tabella::app {
namespace {

bool listens_everywhere(const Address& address) { return address.host == "0.0.0.0" || address.host == "::"; }

}  // namespace

DynamoDbPort::DynamoDbPort(const ServeOptions& options, OpenStore& store, const Clock& clock,
                           store::LongWork long_work, std::set<std::string> own_tables,
                           net::IoThreads& threads, net::Limits& limits)
    : options_(options),
      door_(store.store(), clock,
            {.access_keys = options.access_keys,
             .hosts = hosts_of(options, options.dynamodb),
             .cors_origin = options.cors_origin,
             .problem = [&store] { return store.known_problem(); },
             .unlisted_tables = options.show_system_tables ? std::set<std::string>() : std::move(own_tables),
             .long_work = std::move(long_work)}),
      server_(threads,
              {.host = options.dynamodb.host,
               .port = options.dynamodb.port,
               .tls = options.tls,
               .max_body = wire::kMaxBody,
               .limits = &limits},
              [this](const net::HttpRequest& request, net::HttpResponse& response) {
                return door_.handle(request, response);
              }),
      note_(options.store.data,
            url(listens_everywhere(options.dynamodb) ? "127.0.0.1" : options.dynamodb.host)) {}

std::string DynamoDbPort::url(const std::string& host) const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", options_.tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
                     server_.port());
}

std::vector<std::string> DynamoDbPort::announce() const {
  const auto& host = options_.dynamodb.host;
  std::vector<std::string> lines = {
      fmt::format("Tabella serves DynamoDB on {}://{}:{} (data in {}, {})", options_.tls ? "https" : "http",
                  host, server_.port(), options_.store.data.string(),
                  options_.durability == engine::Durability::sync ? "durable" : "relaxed durability")};
  if (!is_loopback(options_.dynamodb) && options_.access_keys.empty())
    lines.push_back(fmt::format("Whoever reaches {}:{} may use all tables: --access-key closes it", host,
                                server_.port()));
  return lines;
}

}  // namespace tabella::app

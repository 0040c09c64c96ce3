#include "manhunt/api.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr const char* kKeyHeader = "x-manhunt-key";
// Where their paths would be others'.
constexpr std::string_view kTakenNames[] = {"alertmanager", "calendar", "callbacks", "r",
                                            "schedules",    "simulator"};

}  // namespace

net::Route domain_route(std::string method, std::string path, std::string summary, std::string body) {
  const auto* scope = method == "GET" ? "manhunt:read" : "manhunt:write";
  net::Route route{std::move(method), std::move(path), scope, std::move(summary)};
  route.body = std::move(body);
  route.own_credentials = {{"X-Manhunt-Key"}};
  return route;
}

// What comes with its own proof: a signature, a token, a key.
net::Route open_route(std::string method, std::string path, std::string summary, std::string answer) {
  net::Route route{std::move(method), std::move(path), net::kAnybody, std::move(summary)};
  route.answer = std::move(answer);
  return route;
}

void Api::add_routes(Routes routes) {
  add_answer_routes(routes);
  add_door_routes(routes);
  add_schedule_routes(routes);
  add_domain_routes(routes);
  add_heartbeat_routes(routes);
  add_contact_routes(routes);
  add_search_routes(routes);
}

awaitable<std::optional<std::string>> Api::domain_for(Call& call, const char* scope) {
  const auto& domain = call.path("domain");
  if (const auto key = call.request.header(kKeyHeader); !key.empty()) {
    const auto is_secret = problem_with_name("domain", domain).empty()
                               ? co_await parts_.domains.is_secret(domain, std::string(key))
                               : store::Result<bool>(false);
    if (!is_secret) {
      house::refuse(call, is_secret.error());
      co_return std::nullopt;
    }
    if (!*is_secret) {
      call.refuse(401, "x-manhunt-key is not the secret of this domain");
      co_return std::nullopt;
    }
  } else if (call.not_admitted) {
    call.refuse(*call.not_admitted);
    co_return std::nullopt;
  } else if (!call.caller.may(scope)) {
    call.refuse(403, fmt::format("{} lacks the scope {}",
                                 call.caller.name.empty() ? "the caller" : call.caller.name, scope));
    co_return std::nullopt;
  }
  if (const auto problem = problem_with_name("domain", domain); !problem.empty()) {
    call.refuse(400, problem);
    co_return std::nullopt;
  }
  if (std::ranges::find(kTakenNames, domain) != std::end(kTakenNames)) {
    call.refuse(400, fmt::format("domain: {} is no name for one", domain));
    co_return std::nullopt;
  }
  co_return domain;
}

std::optional<std::string> Api::name_in(Call& call, const char* what) {
  const auto& name = call.path(what);
  const auto problem = problem_with_name(what, name);
  if (problem.empty()) return name;
  call.refuse(400, problem);
  return std::nullopt;
}

awaitable<std::optional<DomainView>> Api::view_of(Call& call, const std::string& domain) {
  // Who only looks is shown what is two seconds old at most; who changes something, what is there now.
  auto view = call.request.method == "GET" ? co_await parts_.domains.find(domain)
                                           : co_await parts_.domains.read(domain);
  if (view) co_return std::move(*view);
  house::refuse(call, view.error());
  co_return std::nullopt;
}

void not_there(net::Call& call, std::string_view what) {
  call.refuse(404, fmt::format("there is no such {} in this domain", what));
}

std::string metadata_json(JsonValue json) {
  std::string text;
  append_json(text, json);
  return text;
}

bool may_write(const net::Call& call) {
  return !call.request.header(kKeyHeader).empty() || call.caller.may("manhunt:write");
}

}  // namespace tabella::manhunt

#include "manhunt/api.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/links.h"

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
  route.own_credentials = true;
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
    const auto is_secret = co_await parts_.domains.is_secret(domain, std::string(key));
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
  auto view = co_await parts_.domains.read(domain);
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

void write_search(JsonObjectWriter& out, const Search& search) {
  out.string("id", search.id);
  out.string("domain", search.domain);
  out.string("status", name_of(search.status));
  if (!search.contact.empty()) out.string("contact", search.contact);
  if (!search.policy.empty()) out.string("policy", search.policy);
  if (!search.key.empty()) out.string("key", search.key);
  out.string("urgency", search.low_urgency ? "low" : "high");
  out.string("created", time_text(time_at(search.created)));
  out.key("metadata").append(search.metadata);
  if (search.status == Status::active) return;
  out.string("ended", time_text(time_at(search.ended)));
  JsonObjectWriter resolution(out.key("resolution"));
  resolution.string("how", search.resolution.how);
  if (!search.resolution.by.empty()) resolution.string("by", search.resolution.by);
  if (!search.resolution.attempt.empty()) resolution.string("attempt", search.resolution.attempt);
  if (!search.resolution.detail.empty()) resolution.string("detail", search.resolution.detail);
  resolution.string("at", time_text(time_at(search.ended)));
}

bool may_answer(const net::Call& call) {
  return !call.request.header(kKeyHeader).empty() || call.caller.may("manhunt:write");
}

void write_attempt(std::string& out, const Attempt& attempt, bool with_links) {
  JsonObjectWriter object(out);
  object.string("id", attempt.id.text());
  object.string("contact", attempt.contact);
  object.string("contact_name", attempt.contact_name);
  object.string("method", attempt.method);
  object.string("type", name_of(attempt.kind));
  object.string("destination", attempt.destination);
  object.string("state", name_of(attempt.state));
  object.string("due", time_text(time_at(attempt.due)));
  object.string("started", time_text(time_at(attempt.started)));
  if (attempt.finished > 0) object.string("finished", time_text(time_at(attempt.finished)));
  if (!attempt.detail.empty()) object.string("detail", attempt.detail);
  if (!attempt.bundle.empty()) object.string("bundle", attempt.bundle);
  if (!attempt.text.empty()) object.string("text", with_links ? attempt.text : without_links(attempt.text));
  if (!attempt.progress.empty()) object.string("progress", attempt.progress);
  {
    JsonArrayWriter tries(object.key("tries"));
    for (const auto& each : attempt.tries) {
      JsonObjectWriter one(tries.element());
      one.string("at", time_text(time_at(each.at)));
      one.string("provider", each.provider);
      one.string("outcome", name_of(each.outcome));
      if (!each.detail.empty()) one.string("detail", each.detail);
      if (!each.reference.empty()) one.string("reference", each.reference);
    }
  }
  if (attempt.answer.empty()) return;
  JsonObjectWriter response(object.key("response"));
  response.string("answer", attempt.answer);
  response.string("how", attempt.answered_how);
  response.string("at", time_text(time_at(attempt.answered)));
}

}  // namespace tabella::manhunt

// Tenants, their inboxes, and the tokens of their users.
#include <fmt/format.h>

#include "base/duration.h"
#include "base/public_key.h"
#include "base/text.h"
#include "base/time_text.h"
#include "inbox/api.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using std::chrono::seconds;

namespace {

constexpr size_t kMostTitle = 1024;
constexpr size_t kMostDescription = 4096;
constexpr size_t kMostKey = 8192;
constexpr seconds kUsualToken = std::chrono::hours{1};
constexpr seconds kLongestToken = std::chrono::days{30};
constexpr const char* kTenantExample =
    R"({"title": "Shop", "ttl": "30d", "public_keys": ["-----BEGIN PUBLIC KEY-----…"]})";
constexpr const char* kInboxExample =
    R"({"title": "Bell", "description": "…", "ttl": {"default": "30d", "orders": "90d"}})";
constexpr const char* kTokenExample = R"({"user": "ann", "ttl": "1h", "inbox": "bell"})";

void write_tenant(std::string& out, const std::string& tenant, const TenantSettings& settings,
                  const std::map<std::string, InboxSettings>& inboxes) {
  JsonObjectWriter object(out);
  object.string("tenant", tenant);
  object.string("title", settings.title);
  if (!settings.ttl.empty()) object.string("ttl", settings.ttl);
  {
    JsonArrayWriter keys(object.key("public_keys"));
    for (const auto& key : settings.public_keys) append_json_string(keys.element(), key);
  }
  JsonArrayWriter names(object.key("inboxes"));
  for (const auto& [name, inbox] : inboxes) append_json_string(names.element(), name);
}

void write_inbox(std::string& out, const Place& place, const InboxSettings& settings) {
  JsonObjectWriter object(out);
  object.string("tenant", place.tenant);
  object.string("inbox", place.inbox);
  object.string("title", settings.title);
  object.string("description", settings.description);
  JsonObjectWriter ttl(object.key("ttl"));
  for (const auto& [category, time] : settings.ttl) ttl.string(category, time);
}

// How long a token is to last, of what was asked for; answers 400 where that is too long.
seconds lifetime_of(net::Call& call, std::string_view text) {
  if (text.empty()) return kUsualToken;
  const auto time = parse_duration(text);
  if (time && *time >= seconds(1) && *time <= kLongestToken)
    return std::chrono::duration_cast<seconds>(*time);
  call.refuse(400, "ttl: expected a time as in 1h, from 1s to 30d");
  return kUsualToken;
}

void answer_token(net::Call& call, const std::string& secret, const Place& place, const std::string& user,
                  TimePoint now, seconds lifetime) {
  JsonObjectWriter object(call.answer_json(201));
  object.string("token", make_user_token(secret, place, user, now, lifetime));
  object.string("user", user);
  object.string("expires", time_text(now + lifetime));
}

}  // namespace

void Api::add_tenant_routes(Routes& routes) {
  const auto with_body = [](net::Route route, const char* body) {
    route.body = body;
    return route;
  };
  routes.add(own_route("GET", "/inbox/{tenant}", "Shows a tenant's settings and inboxes"), &Api::show_tenant);
  routes.add(with_body(own_route("PUT", "/inbox/{tenant}", "Sets a tenant's title, time to live and keys"),
                       kTenantExample),
             &Api::set_tenant);
  routes.add(own_route("POST", "/inbox/{tenant}/secret",
                       "Shows the tenant's secret, which signs tokens and is good as X-Inbox-Key"),
             &Api::show_secret);
  routes.add(with_body(own_route("POST", "/inbox/{tenant}/tokens", "Makes a token for a user's pages"),
                       kTokenExample),
             &Api::make_token);
  routes.add(
      own_route("POST", "/inbox/{tenant}/tokens/refresh", "Makes a new token of one that still is good"),
      &Api::refresh_token);
  routes.add(own_route("GET", "/inbox/{tenant}/{inbox}", "Shows an inbox's settings"), &Api::show_inbox);
  routes.add(with_body(own_route("PUT", "/inbox/{tenant}/{inbox}", "Sets an inbox's title and times to live"),
                       kInboxExample),
             &Api::set_inbox);
}

awaitable<void> Api::show_tenant(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant || !co_await admit_admin(call, *tenant)) co_return;
  const auto settings = co_await parts_.settings.tenant(*tenant);
  if (!settings) co_return house::refuse(call, settings.error());
  const auto inboxes = co_await parts_.settings.inboxes(*tenant);
  if (!inboxes) co_return house::refuse(call, inboxes.error());
  write_tenant(call.answer_json(), *tenant, settings->value_or(TenantSettings{}), *inboxes);
}

awaitable<void> Api::set_tenant(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant || !co_await admit_admin(call, *tenant)) co_return;
  auto body = call.json(kTenantExample);
  if (!body) co_return;
  TenantSettings settings{.title = body->text("title", ""), .ttl = body->text("ttl", "")};
  settings.public_keys = body->texts("public_keys");
  body->no_others();
  if (!settings.ttl.empty())
    if (const auto problem = problem_with_ttl(settings.ttl); !problem.empty())
      call.refuse(400, "ttl: " + problem);
  if (settings.title.size() > kMostTitle) call.refuse(400, "title: at most 1024 bytes");
  if (settings.public_keys.size() > 10) call.refuse(400, "public_keys: at most 10");
  for (const auto& key : settings.public_keys)
    if (const auto problem = key.size() > kMostKey ? "it is longer than 8 KB" : problem_with_public_key(key);
        !problem.empty())
      call.refuse(400, "public_keys: " + problem);
  if (call.answered()) co_return;
  const auto put = co_await parts_.settings.put(*tenant, settings);
  if (!put) co_return house::refuse(call, put.error());
  co_await show_tenant(call);
}

awaitable<void> Api::show_inbox(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  const auto settings = co_await parts_.settings.inbox(*place);
  if (!settings) co_return house::refuse(call, settings.error());
  write_inbox(call.answer_json(), *place, settings->value_or(InboxSettings{}));
}

awaitable<void> Api::set_inbox(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  auto body = call.json(kInboxExample);
  if (!body) co_return;
  InboxSettings settings{.title = body->text("title", ""), .description = body->text("description", "")};
  if (const auto ttl = body->any("ttl")) {
    if (!ttl->is_object()) co_return call.refuse(400, "ttl: expected an object as in {\"default\": \"30d\"}");
    for (JsonElements each(*ttl); each.next();) {
      const auto text = each.value().kind() == JsonValue::Kind::string ? each.value().string() : "";
      if (const auto problem = problem_with_ttl(text); !problem.empty())
        co_return call.refuse(400, fmt::format("ttl: {}: {}", each.key(), problem));
      settings.ttl[std::string(each.key())] = std::string(text);
    }
    if (settings.ttl.size() > 1000) co_return call.refuse(400, "ttl: at most 1000 categories");
  }
  body->no_others();
  if (settings.title.size() > kMostTitle) call.refuse(400, "title: at most 1024 bytes");
  if (settings.description.size() > kMostDescription) call.refuse(400, "description: at most 4096 bytes");
  if (call.answered()) co_return;
  const auto put = co_await parts_.settings.put(*place, settings);
  if (!put) co_return house::refuse(call, put.error());
  write_inbox(call.answer_json(), *place, settings);
}

awaitable<void> Api::show_secret(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant || !co_await admit_admin(call, *tenant)) co_return;
  const auto secret = co_await secret_of(call, *tenant);
  if (!secret) co_return;
  JsonObjectWriter(call.answer_json()).string("secret", *secret);
}

awaitable<void> Api::make_token(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant || !co_await admit_admin(call, *tenant)) co_return;
  auto body = call.json(kTokenExample);
  if (!body) co_return;
  const auto user = body->text("user");
  const Place place{.tenant = *tenant, .inbox = body->text("inbox", "")};
  const auto lifetime = lifetime_of(call, body->text("ttl", ""));
  body->no_others();
  if (const auto problem = problem_with_name("user", user); !problem.empty()) call.refuse(400, problem);
  if (call.answered()) co_return;
  const auto secret = co_await secret_of(call, *tenant);
  if (!secret) co_return;
  answer_token(call, *secret, place, user, parts_.clock.now(), lifetime);
}

// For one that is signed with our secret: who signs by himself makes his own.
awaitable<void> Api::refresh_token(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant) co_return;
  const auto header = call.request.header("authorization");
  if (lower(header.substr(0, 7)) != "bearer ") co_return refuse_stranger(call);
  const auto keys = co_await keys_of(call, *tenant);
  if (!keys) co_return;
  const auto now = parts_.clock.now();
  const auto token = read_user_token(header.substr(7), {.secret = keys->secret}, {.tenant = *tenant}, now);
  if (!token) {
    if (call.not_admitted || !call.caller.name.empty()) co_return refuse_stranger(call);
    co_return call.refuse(401, token.error());
  }
  const auto lifetime = token->lifetime > seconds(0) ? std::min(token->lifetime, kLongestToken) : kUsualToken;
  answer_token(call, keys->secret, {.tenant = *tenant, .inbox = token->inbox}, token->user, now, lifetime);
}

}  // namespace tabella::inbox

// Tenants, their inboxes, and the tokens of their users.
#include <fmt/format.h>

#include "base/duration.h"
#include "base/public_key.h"
#include "base/text.h"
#include "base/time_text.h"
#include "inbox/api.h"
#include "inbox/schema.h"
#include "webhook/signature.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using std::chrono::seconds;

namespace {

constexpr size_t kMostTitle = 1024;
constexpr size_t kMostDescription = 4096;
constexpr size_t kMostKey = 8192;
constexpr size_t kMostNamed = 1000;
constexpr std::chrono::milliseconds kLongestDelay = std::chrono::days{30};
constexpr std::chrono::milliseconds kShortestDigest{1000};
constexpr std::chrono::milliseconds kLongestDigest = std::chrono::days{7};
constexpr seconds kUsualToken = std::chrono::hours{1};
constexpr seconds kLongestToken = std::chrono::days{30};  // with all renewals of it
constexpr const char* kTenantExample =
    R"({"title": "Shop", "ttl": "30d", "public_keys": ["-----BEGIN PUBLIC KEY-----…"], "preferences": {"news": {"email": true}}})";
constexpr const char* kInboxExample =
    R"({"title": "Bell", "description": "…", "ttl": {"default": "30d", "orders": "90d"}, "preferences": {"orders": {"email": true}}, "email": {"from": "Shop <bell@example.com>", "after": "10m", "link_base": "https://example.com"}, "webhook": {"url": "https://example.com/hook"}, "digests": {"likes": {"every": "1h", "title": "{count} new likes"}}, "schema": {"required": ["order"]}})";
constexpr const char* kSecretExample = R"({"anew": true})";
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
  write_wishes_member(object, "preferences", settings.wishes);
  JsonArrayWriter names(object.key("inboxes"));
  for (const auto& [name, inbox] : inboxes) append_json_string(names.element(), name);
}

void write_inbox(std::string& out, const Place& place, const InboxSettings& settings) {
  JsonObjectWriter object(out);
  object.string("tenant", place.tenant);
  object.string("inbox", place.inbox);
  object.string("title", settings.title);
  object.string("description", settings.description);
  {
    JsonObjectWriter ttl(object.key("ttl"));
    for (const auto& [category, time] : settings.ttl) ttl.string(category, time);
  }
  write_wishes_member(object, "preferences", settings.wishes);
  {
    JsonObjectWriter digests(object.key("digests"));
    for (const auto& [category, digest] : settings.digests) {
      JsonObjectWriter one(digests.key(category));
      one.string("every", digest.every);
      if (!digest.title.empty()) one.string("title", digest.title);
    }
  }
  if (settings.email) {
    JsonObjectWriter email(object.key("email"));
    email.string("from", settings.email->from);
    email.string("after", fmt::format("{}s", settings.email->after.count()));
    if (!settings.email->link_base.empty()) email.string("link_base", settings.email->link_base);
  }
  if (settings.webhook) {
    JsonObjectWriter hook(object.key("webhook"));
    hook.string("url", settings.webhook->url);
    hook.string("after", fmt::format("{}s", settings.webhook->after.count()));
  }
  if (!settings.schema.empty()) object.key("schema").append(settings.schema);
}

// How long after a message something is to be sent; answers 400 where that is no time.
seconds after_of(net::Call& call, JsonValue object, std::string_view what) {
  const auto text = object.text("after");
  if (text.empty()) return seconds(0);
  const auto time = parse_duration(text);
  if (time && *time <= kLongestDelay) return std::chrono::duration_cast<seconds>(*time);
  call.refuse(400, fmt::format("{}: after: expected a time as in 10m, up to 30d", what));
  return seconds(0);
}

// Only members that are known: one that is misspelt would be overlooked.
void refuse_unknown(net::Call& call, JsonValue object, std::string_view what,
                    std::initializer_list<std::string_view> known) {
  for (JsonElements each(object); each.next();)
    if (std::ranges::find(known, each.key()) == known.end())
      call.refuse(400, fmt::format("{}: {} is not known here", what, printable(each.key())));
}

void read_ttl(net::Call& call, net::JsonBody& body, InboxSettings& settings) {
  const auto ttl = body.any("ttl");
  if (!ttl) return;
  if (!ttl->is_object()) return call.refuse(400, "ttl: expected an object as in {\"default\": \"30d\"}");
  for (JsonElements each(*ttl); each.next();) {
    const auto text = each.value().kind() == JsonValue::Kind::string ? each.value().string() : "";
    if (const auto problem = problem_with_ttl(text); !problem.empty())
      return call.refuse(400, fmt::format("ttl: {}: {}", printable(each.key()), problem));
    settings.ttl[std::string(each.key())] = std::string(text);
  }
  if (settings.ttl.size() > kMostNamed) call.refuse(400, "ttl: at most 1000 categories");
}

void read_digests(net::Call& call, net::JsonBody& body, InboxSettings& settings) {
  const auto digests = body.any("digests");
  if (!digests) return;
  if (!digests->is_object()) return call.refuse(400, R"(digests: expected {"likes": {"every": "1h"}})");
  for (JsonElements each(*digests); each.next();) {
    if (const auto problem = problem_with_category(each.key()); !problem.empty())
      return call.refuse(400, "digests: " + problem);
    const bool brief = each.value().kind() == JsonValue::Kind::string;
    if (!brief && !each.value().is_object())
      return call.refuse(400, R"(digests: expected {"likes": {"every": "1h"}})");
    if (!brief) refuse_unknown(call, each.value(), "digests", {"every", "title"});
    DigestSettings digest{.every = std::string(brief ? each.value().string() : each.value().text("every")),
                          .title = std::string(brief ? "" : each.value().text("title"))};
    const auto every = parse_duration(digest.every);
    if (!every || *every < kShortestDigest || *every > kLongestDigest)
      return call.refuse(400, fmt::format("digests: {}: every: expected a time as in 1h, from 1s to 7d",
                                          printable(each.key())));
    if (digest.title.size() > kMostTitle) return call.refuse(400, "digests: title: at most 1024 bytes");
    settings.digests[std::string(each.key())] = std::move(digest);
  }
  if (settings.digests.size() > kMostNamed) call.refuse(400, "digests: at most 1000 categories");
}

void read_email(net::Call& call, net::JsonBody& body, InboxSettings& settings) {
  const auto email = body.any("email");
  if (!email) return;
  if (!email->is_object()) return call.refuse(400, R"(email: expected {"from": "Shop <bell@example.com>"})");
  refuse_unknown(call, *email, "email", {"from", "after", "link_base"});
  settings.email = {.from = std::string(email->text("from")),
                    .link_base = std::string(email->text("link_base")),
                    .after = after_of(call, *email, "email")};
  if (settings.email->from.empty() || settings.email->from.size() > kMostTitle)
    return call.refuse(400, "email: from: expected an address as in Shop <bell@example.com>");
  const auto& base = settings.email->link_base;
  if (!base.empty() && !base.starts_with("https://") && !base.starts_with("http://"))
    call.refuse(400, "email: link_base: expected an address as in https://example.com");
}

void read_schema(net::Call& call, net::JsonBody& body, InboxSettings& settings) {
  const auto schema = body.any("schema");
  if (!schema) return;
  append_json(settings.schema, *schema);
  if (const auto read = Schema::read(settings.schema); !read)
    call.refuse(400, "schema: " + read.error().message);
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

void answer_token(net::Call& call, const std::string& secret, const NewToken& token, TimePoint now) {
  JsonObjectWriter object(call.answer_json(201));
  object.string("token", make_user_token(secret, token, now));
  object.string("user", token.user);
  object.string("expires", time_text(now + token.lifetime));
}

}  // namespace

void Api::add_tenant_routes(Routes& routes) {
  const auto with_body = [](net::Route route, const char* body) {
    route.body = body;
    return route;
  };
  routes.add(tenant_route("GET", "/inbox/{tenant}", "Shows a tenant's settings and inboxes"),
             &Api::show_tenant);
  routes.add(with_body(tenant_route("PUT", "/inbox/{tenant}", "Sets a tenant's title, time to live and keys"),
                       kTenantExample),
             &Api::set_tenant);
  auto secret = with_body(tenant_route("POST", "/inbox/{tenant}/secret",
                                       "Shows the tenant's secret, which signs tokens and is good as "
                                       "X-Inbox-Key, and that of its webhooks; or makes others"),
                          kSecretExample);
  secret.body_is_optional = true;
  routes.add(std::move(secret), &Api::show_secret);
  routes.add(with_body(tenant_route("POST", "/inbox/{tenant}/tokens", "Makes a token for a user's pages"),
                       kTokenExample),
             &Api::make_token);
  routes.add(
      user_route("POST", "/inbox/{tenant}/tokens/refresh", "Makes a new token of one that still is good"),
      &Api::refresh_token);
  routes.add(tenant_route("GET", "/inbox/{tenant}/{inbox}", "Shows an inbox's settings"), &Api::show_inbox);
  routes.add(
      with_body(tenant_route("PUT", "/inbox/{tenant}/{inbox}", "Sets an inbox's title and times to live"),
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
  if (auto wishes = read_wishes_member(call, *body, "preferences")) settings.wishes = std::move(*wishes);
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
  read_ttl(call, *body, settings);
  if (auto wishes = read_wishes_member(call, *body, "preferences")) settings.wishes = std::move(*wishes);
  read_digests(call, *body, settings);
  read_email(call, *body, settings);
  read_schema(call, *body, settings);
  if (const auto hook = body->any("webhook")) {
    if (!hook->is_object()) co_return call.refuse(400, R"(webhook: expected {"url": "https://…"})");
    refuse_unknown(call, *hook, "webhook", {"url", "after"});
    settings.webhook = {.url = std::string(hook->text("url")), .after = after_of(call, *hook, "webhook")};
    if (const auto url = parts_.outbound.check(settings.webhook->url); !url)
      co_return call.refuse(400, "webhook: url: " + url.error().message);
  }
  // Whose name emails are sent in is not for tenants to choose.
  if (settings.email && !call.answered()) {
    const auto now = co_await parts_.settings.inbox(*place);
    if (!now) co_return house::refuse(call, now.error());
    const bool as_before = *now && (*now)->email && (*now)->email->from == settings.email->from;
    if (!as_before && (call.not_admitted || !call.caller.may("inbox:admin")))
      co_return call.refuse(403, "email: from: that is set by who has the scope inbox:admin");
  }
  if (settings.email && !parts_.channels.can_send_email())
    call.refuse(400, "email: the outbox, which sends them, is not among --systems");
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
  bool anew = false;
  if (!call.request.body.empty()) {
    auto body = call.json(kSecretExample);
    if (!body) co_return;
    anew = body->flag("anew", false);
    body->no_others();
    if (call.answered()) co_return;
  }
  const auto secret = co_await (anew ? parts_.keys.make_secret(*tenant, true) : parts_.keys.secret(*tenant));
  if (!secret) co_return house::refuse(call, secret.error());
  JsonObjectWriter object(call.answer_json());
  object.string("secret", *secret);
  object.string("webhook_secret", webhook::secret_of(*secret));
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
  const auto secret = co_await parts_.keys.secret(*tenant);
  if (!secret) co_return house::refuse(call, secret.error());
  answer_token(call, *secret, {.place = place, .user = user, .lifetime = lifetime}, parts_.clock.now());
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
    const bool is_token = std::ranges::count(header, '.') == 2;
    if (!is_token && (call.not_admitted || !call.caller.name.empty())) co_return refuse_stranger(call);
    co_return call.refuse(401, token.error());
  }
  if (!token->issued)
    co_return call.refuse(401, "a token that does not say when it was issued (iat) is not renewed");
  const auto last = *token->first_issued + kLongestToken;
  if (last <= now)
    co_return call.refuse(401, "the first of these tokens was issued too long ago: make a new one");
  const auto lifetime = std::min(token->expires - *token->issued, last - now);
  answer_token(call, keys->secret,
               {.place = {.tenant = *tenant, .inbox = token->inbox},
                .user = token->user,
                .lifetime = std::max(std::chrono::duration_cast<seconds>(lifetime), seconds(1)),
                .first_issued = token->first_issued},
               now);
}

}  // namespace tabella::inbox

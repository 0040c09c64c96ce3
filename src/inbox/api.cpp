#include "inbox/api.h"

#include <charconv>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time_text.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

constexpr const char* kAdmin = "inbox:admin";
constexpr const char* kKeyHeader = "x-inbox-key";
constexpr const char* kUserHeader = "x-inbox-user";
constexpr const char* kHmacHeader = "x-inbox-hmac";

// A JSON Web Token; any other is for the gate.
std::string_view user_token_of(const net::Call& call) {
  auto value = call.request.header("authorization");
  if (lower(value.substr(0, 7)) != "bearer ") return {};
  value.remove_prefix(7);
  return std::ranges::count(value, '.') == 2 ? value : std::string_view();
}

}  // namespace

net::Route tenant_route(std::string method, std::string path, std::string summary) {
  net::Route route{std::move(method), std::move(path), kAdmin, std::move(summary)};
  route.own_credentials = {{"X-Inbox-Key"}};
  return route;
}

net::Route user_route(std::string method, std::string path, std::string summary) {
  auto route = tenant_route(std::move(method), std::move(path), std::move(summary));
  route.own_credentials.push_back({"X-Inbox-User", "X-Inbox-Hmac"});
  return route;
}

void Api::add_routes(Routes routes) {
  add_tenant_routes(routes);
  add_post_routes(routes);
  add_preference_routes(routes);
  add_message_routes(routes);
  add_live_routes(routes);
  add_script_route(routes);
}

std::optional<std::string> Api::tenant_of(Call& call) {
  const auto& tenant = call.path("tenant");
  if (const auto problem = problem_with_name("tenant", tenant); !problem.empty()) {
    call.refuse(400, problem);
    return {};
  }
  return tenant;
}

std::optional<Place> Api::place_of(Call& call) {
  auto tenant = tenant_of(call);
  if (!tenant) return {};
  const auto& inbox = call.path("inbox");
  if (const auto problem = problem_with_name("inbox", inbox); !problem.empty()) {
    call.refuse(400, problem);
    return {};
  }
  // Where their paths would be others'.
  if (inbox == "users" || inbox == "tokens" || inbox == "secret") {
    call.refuse(400, "inbox: users, tokens and secret are no names for one");
    return {};
  }
  return Place{.tenant = std::move(*tenant), .inbox = inbox};
}

// --- who may come in

void Api::refuse_stranger(Call& call) {
  if (call.not_admitted) return call.refuse(*call.not_admitted);
  call.refuse(403, fmt::format("{} lacks the scope {}",
                               call.caller.name.empty() ? "the caller" : call.caller.name, kAdmin));
}

awaitable<std::optional<TokenKeys>> Api::keys_of(Call& call, const std::string& tenant) {
  auto keys = co_await parts_.keys.find(tenant);
  if (keys) co_return std::move(*keys);
  house::refuse(call, keys.error());
  co_return std::nullopt;
}

// A user's token is good for the user's own, whoever else could come in with nothing at all.
awaitable<bool> Api::is_admin(Call& call, const std::string& tenant) {
  if (!user_token_of(call).empty()) co_return false;
  const auto key = call.request.header(kKeyHeader);
  if (!key.empty()) {
    const auto keys = co_await keys_of(call, tenant);
    co_return keys && !keys->secret.empty() && equal_in_constant_time(keys->secret, key);
  }
  co_return !call.not_admitted && call.caller.may(kAdmin);
}

awaitable<bool> Api::admit_admin(Call& call, const std::string& tenant) {
  if (co_await is_admin(call, tenant)) co_return true;
  if (call.answered()) co_return false;
  if (call.request.has_header(kKeyHeader))
    call.refuse(401, "x-inbox-key is not the secret of this tenant");
  else if (!user_token_of(call).empty())
    call.refuse(403, "a user's token is good for the user's own messages only");
  else
    refuse_stranger(call);
  co_return false;
}

awaitable<std::optional<Box>> Api::box_of(Call& call, TimePoint* until) {
  auto place = place_of(call);
  if (!place) co_return std::nullopt;
  if (const auto token = user_token_of(call); !token.empty()) {
    const auto keys = co_await keys_of(call, place->tenant);
    if (!keys) co_return std::nullopt;
    auto read = read_user_token(token, *keys, *place, parts_.clock.now());
    if (read && until) *until = std::min(*until, read->expires);
    if (read) co_return Box{.place = std::move(*place), .user = std::move(read->user)};
    call.refuse(401, read.error());
    co_return std::nullopt;
  }
  std::string user(call.request.header(kUserHeader));
  if (user.empty()) user = call.text("user");
  const auto hmac = call.request.header(kHmacHeader);
  if (!hmac.empty()) {
    const auto keys = co_await keys_of(call, place->tenant);
    if (!keys) co_return std::nullopt;
    if (keys->secret.empty() || !equal_in_constant_time(user_hmac(keys->secret, user), hmac)) {
      call.refuse(401, "x-inbox-hmac is not that of this user");
      co_return std::nullopt;
    }
  } else if (!co_await admit_admin(call, place->tenant)) {
    co_return std::nullopt;
  }
  if (const auto problem = problem_with_name("user", user); !problem.empty()) {
    call.refuse(400, user.empty() ? "whose messages? Send a token, or the header X-Inbox-User" : problem);
    co_return std::nullopt;
  }
  co_return Box{.place = std::move(*place), .user = std::move(user)};
}

// --- what is shown

std::string sequence_text(const Mark& mark) { return fmt::format("{}.{}", mark.own, mark.broadcast); }

std::optional<Mark> parse_sequence(std::string_view text) {
  Mark mark;
  const auto* end = text.data() + text.size();
  const auto own = std::from_chars(text.data(), end, mark.own);
  if (own.ec != std::errc() || own.ptr == end || *own.ptr != '.') return {};
  const auto broadcast = std::from_chars(own.ptr + 1, end, mark.broadcast);
  if (broadcast.ec != std::errc() || broadcast.ptr != end || mark.own < 0 || mark.broadcast < 0) return {};
  return mark;
}

void write_entry(std::string& out, const Entry& entry) {
  const auto& state = entry.state;
  JsonObjectWriter object(out);
  object.string("id", entry.message->id);
  object.string("created", time_text(time_of_id(entry.message->id)));
  if (!state.category.empty()) object.string("category", state.category);
  write_content(object, *entry.message);
  object.boolean("read", !entry.unread);
  object.boolean("seen", !entry.unseen);
  if (state.read_at) object.number("readat", *state.read_at);
  object.number("arrived", state.arrived);
  if (state.unread_at != 0) object.number("unreadat", state.unread_at);
  object.number("changed", entry.changed);
  object.boolean("archived", state.archived_at.has_value());
  if (state.snoozed_until) object.string("snoozed_until", time_text(time_at(*state.snoozed_until)));
  object.number("expiredat", entry.message->expires);
}

void write_counts(std::string& out, const Counts& counts) {
  const auto write = [](std::string& to, const Tally& tally) {
    JsonObjectWriter one(to);
    one.number("total", tally.total);
    one.number("unread", tally.unread);
    one.number("unseen", tally.unseen);
    one.number("archived", tally.archived);
    one.number("snoozed", tally.snoozed);
  };
  JsonObjectWriter object(out);
  const auto all = counts.tallies.find(kAll);
  write(object.key("all"), all == counts.tallies.end() ? Tally{} : all->second);
  JsonObjectWriter categories(object.key("categories"));
  for (const auto& [category, tally] : counts.tallies)
    if (category != kAll && tally != Tally{.read = tally.read}) write(categories.key(category), tally);
}

void write_marks(std::string& out, const Marks& marks, const Mark& as_of) {
  const auto write = [](std::string& to, const Mark& mark) {
    JsonObjectWriter one(to);
    one.number("own", mark.own);
    one.number("public", mark.broadcast);
  };
  JsonObjectWriter object(out);
  object.number("at", as_of.own);
  write(object.key("read"), marks.read);
  write(object.key("seen"), marks.seen);
  JsonObjectWriter categories(object.key("categories"));
  for (const auto& [category, mark] : marks.read_in) write(categories.key(category), mark);
}

}  // namespace tabella::inbox

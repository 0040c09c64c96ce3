#include "access/gate.h"

#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/log.h"
#include "base/text.h"

namespace tabella::access {

using boost::asio::awaitable;
using net::Caller;
using net::Refusal;

namespace {

// Who may have a token for a password: `curl -u token:tab_…`.
constexpr std::string_view kTokenUser = "token";

Refusal refused(std::string message) {
  return {.status = 401,
          .message = std::move(message),
          .headers = {{"WWW-Authenticate", "Basic realm=\"Tabella\""}}};
}

Refusal try_again(std::string message) {
  return {.status = 503, .message = std::move(message), .headers = {{"Retry-After", "1"}}};
}

Refusal without_store(const store::Error& error) {
  log::warning("credentials could not be checked: {}", error.message);
  return try_again("the store that knows who may come in does not answer; try again");
}

Caller as_user(std::string_view name) { return {.name = fmt::format("user {}", name), .scopes = {"*"}}; }

// What stands behind the scheme of an Authorization header; nothing if it has another.
std::optional<std::string_view> behind(std::string_view scheme, std::string_view authorization) {
  const auto blank = authorization.find(' ');
  if (blank == std::string_view::npos || !net::same_header(authorization.substr(0, blank), scheme))
    return std::nullopt;
  return trim(authorization.substr(blank + 1));
}

// A token in the headers that are for one; empty: there is none of ours.
std::string_view token_of(const net::HttpRequest& request) {
  const auto bearer = behind("Bearer", request.header("authorization")).value_or("");
  for (const auto given : {bearer, request.header("x-api-key")})
    if (given.starts_with(kTokenPrefix)) return given;
  return {};
}

std::optional<UserAndPassword> parse_basic(std::string_view encoded) {
  const auto decoded = from_base64(encoded);
  const auto colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return UserAndPassword{.user = decoded->substr(0, colon), .password = decoded->substr(colon + 1)};
}

}  // namespace

awaitable<AccessGate::Admission> AccessGate::admit(const net::HttpRequest& request) {
  auto found = co_await by_credentials(request);
  if (found) co_return std::move(*found);
  co_return co_await without_credentials();
}

// A browser sends its cookie with everything: what was given for this request goes before it.
awaitable<AccessGate::Found> AccessGate::by_credentials(const net::HttpRequest& request) {
  if (const auto secret = token_of(request); !secret.empty()) co_return co_await by_token(secret);
  if (const auto basic = behind("Basic", request.header("authorization")))
    co_return co_await by_password(*basic);
  if (signatures_.required() && protocol::claims_signature(request)) co_return by_signature(request);
  if (const auto cookie = session_cookie(request); !cookie.empty()) co_return co_await by_session(cookie);
  co_return std::nullopt;
}

awaitable<AccessGate::Found> AccessGate::by_token(std::string_view secret) {
  auto token = co_await tokens_.find(secret);
  if (!token) co_return without_store(token.error());
  if (!*token) co_return refused("this token is not known here: it was revoked, or its time is over");
  co_return Caller{.name = fmt::format("token {}", (*token)->name), .scopes = std::move((*token)->scopes)};
}

awaitable<AccessGate::Found> AccessGate::by_password(std::string_view encoded) {
  const auto given = parse_basic(encoded);
  if (given && given->user == kTokenUser && given->password.starts_with(kTokenPrefix))
    co_return co_await by_token(given->password);
  if (!users_) co_return std::nullopt;
  if (!given) co_return refused("the name and the password cannot be read");
  switch (co_await users_->passwords.check(given->user, given->password)) {
    case Verdict::right: co_return as_user(given->user);
    case Verdict::wrong: co_return refused("the name or the password is wrong");
    case Verdict::busy: co_return try_again("too many passwords are being checked; try again");
  }
  std::unreachable();
}

awaitable<AccessGate::Found> AccessGate::by_session(std::string_view cookie) {
  if (!users_) co_return std::nullopt;
  const auto name = co_await users_->sessions.find(cookie);
  if (!name) co_return without_store(name.error());
  if (!*name) co_return std::nullopt;
  co_return as_user(**name);
}

AccessGate::Found AccessGate::by_signature(const net::HttpRequest& request) const {
  if (!signatures_.required()) return std::nullopt;
  const auto key = signatures_.verify(request);
  if (!key) return refused(key.error().message);
  return Caller{.name = fmt::format("key {}", *key), .scopes = {"*"}};
}

awaitable<AccessGate::Admission> AccessGate::without_credentials() {
  if (users_)
    co_return refused("log in with a name and a password, or send a token: Authorization: Bearer tab_…");
  const auto tokens = co_await tokens_.any();
  if (!tokens) co_return without_store(tokens.error());
  if (*tokens)
    co_return refused("send a token: Authorization: Bearer tab_…; `tabella token create` makes one");
  co_return Caller{.name = "", .scopes = {"*"}};
}

}  // namespace tabella::access

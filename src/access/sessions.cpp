#include "access/sessions.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "access/table.h"
#include "base/checksum.h"
#include "base/random.h"
#include "base/text.h"
#include "store/rows.h"

namespace tabella::access {
namespace {

using std::chrono::seconds;
using store::Async;

constexpr std::string_view kCookie = "tabella_session";
constexpr size_t kCookieBytes = 32;
constexpr std::chrono::hours kLifetime{12};
constexpr std::chrono::hours kLongest{7 * 24};
constexpr std::chrono::minutes kBetweenExtensions{10};

std::string id_of(std::string_view cookie) { return to_hex(sha256(cookie)); }

// Time to live counts whole seconds.
int64_t seconds_of(TimePoint time) { return std::chrono::floor<seconds>(time.time_since_epoch()).count(); }

TimePoint end_after_use(TimePoint created, TimePoint now) {
  return std::min(now + kLifetime, created + kLongest);
}

}  // namespace

Sessions::Sessions(store::Store& store, const Clock& clock, const Passwords& passwords, std::string table)
    : store_(store), clock_(clock), passwords_(passwords), table_(std::move(table)), recent_(clock) {}

Sessions::Row Sessions::to_row(item::ItemView row) {
  return {.user = store::text_of(row, "user"),
          .fingerprint = store::binary_of(row, "fingerprint"),
          .created = time_at(store::number_of(row, "created")),
          .expires = TimePoint(seconds(store::number_of(row, "expires")))};
}

Async<std::string> Sessions::begin(std::string user) {
  auto cookie = to_hex(random_bytes(kCookieBytes));
  const auto fingerprint = passwords_.fingerprint(user, cookie);
  if (!fingerprint) co_return store::refuse(fmt::format("there is no user {}", user));
  const auto now = clock_.now();
  store::Row row;
  row.set("kind", kSession).set("id", id_of(cookie)).set("user", user);
  row.set("created", epoch_milliseconds(now)).set("fingerprint", store::Binary{*fingerprint});
  row.set("expires", seconds_of(end_after_use(now, now)));
  auto made = co_await store_.put_item(store::Put(table_, row));
  if (!made) co_return store::error_of(made);
  co_return cookie;
}

Async<std::optional<Sessions::Row>> Sessions::read(std::string id) {
  return read_row(store_, clock_, table_, kSession, std::move(id), recent_, to_row);
}

Async<std::optional<std::string>> Sessions::find(std::string_view cookie) {
  if (cookie.size() != 2 * kCookieBytes) co_return std::nullopt;
  const auto id = id_of(cookie);
  auto row = co_await read(id);
  if (!row) co_return store::error_of(row);
  const auto now = clock_.now();
  if (!*row || (*row)->expires <= now) co_return std::nullopt;
  const auto fingerprint = passwords_.fingerprint((*row)->user, cookie);
  if (!fingerprint || !equal_in_constant_time(*fingerprint, (*row)->fingerprint)) co_return std::nullopt;
  const auto until = end_after_use((*row)->created, now);
  if (until - (*row)->expires >= kBetweenExtensions) co_await extend(id, until);
  co_return std::move((*row)->user);
}

boost::asio::awaitable<void> Sessions::extend(std::string id, TimePoint until) {
  recent_.change(id, [&](std::optional<Row>& row) {
    if (row) row->expires = until;
  });
  co_await update_aside(store_, store::Update(table_, key_of(kSession, id))
                                    .set("expires", seconds_of(until))
                                    .when(store::less("expires", seconds_of(until))));
}

Async<void> Sessions::end(std::string_view cookie) {
  const auto id = id_of(cookie);
  auto removed = co_await remove_row(store_, table_, kSession, id);
  recent_.forget(id);
  if (!removed) co_return store::error_of(removed);
  co_return store::Result<>{};
}

std::string_view session_cookie(const net::HttpRequest& request) {
  for (const auto& [name, value] : request.headers) {
    if (!net::same_header(name, "cookie")) continue;
    for (const auto pair : split(value, ';')) {
      const auto cookie = trim(pair);
      const auto equals = cookie.find('=');
      if (equals != std::string_view::npos && cookie.substr(0, equals) == kCookie)
        return cookie.substr(equals + 1);
    }
  }
  return {};
}

// Without Max-Age: how long it is good for is known here, and changes with its use.
std::string set_session_cookie(std::string_view content, std::string_view path, bool secure) {
  return fmt::format("{}={}; Path={}; HttpOnly; SameSite=Strict{}{}", kCookie, content,
                     path.empty() ? "/" : path, secure ? "; Secure" : "",
                     content.empty() ? "; Max-Age=0" : "");
}

}  // namespace tabella::access

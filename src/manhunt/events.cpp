#include "manhunt/events.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/json.h"
#include "webhook/call.h"
#include "webhook/signature.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kEventTimer = "manhunt-event";
constexpr int kMostAtOnce = 8;     // calls of one domain
constexpr int kMostAttempts = 20;  // over eight hours

// The search as it is when it is told of: it may have gone on since.
std::string body_of(const Search& search, std::string_view event, TimePoint now) {
  std::string json;
  JsonObjectWriter body(json);
  body.string("type", fmt::format("search.{}", event));
  body.string("timestamp", time_text(now));
  JsonObjectWriter data(body.key("data"));
  write_search(data, search);
  return json;
}

}  // namespace

Events::Events(Parts parts) : parts_(parts), places_(parts_.schedule, parts_.clock, kMostAtOnce) {
  parts_.schedule.on(kEventTimer, [this](const schedule::Firing& firing) { return fire(firing); });
}

Async<void> Events::announce(const Search& search, std::string_view event) {
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search.domain));
  if (domain->events_url.empty()) co_return store::Result<void>();
  co_return co_await parts_.schedule.put({.id = fmt::format("manhunt|{}|event|{}", search.id, event),
                                          .kind = kEventTimer,
                                          .at = parts_.clock.now(),
                                          .payload = fmt::format("{}|{}", search.id, event)});
}

awaitable<void> Events::fire(const schedule::Firing& firing) {
  const auto told = co_await tell(firing);
  if (!told) throw std::runtime_error(told.error().message);
}

Async<void> Events::tell(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  if (parts.size() != 2) {
    log::error("a timer of manhunt names no event: {}", firing.timer.payload);
    co_return store::Result<void>();
  }
  TABELLA_CO_ASSIGN(const auto search, co_await parts_.searches.find(std::string(parts[0])));
  if (!search) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search->domain));
  if (domain->events_url.empty()) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(const auto place, co_await places_.take(firing, search->domain));
  if (!place) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(const auto secret, co_await parts_.domains.secret(search->domain));
  const auto now = parts_.clock.now();
  const auto failure = co_await webhook::call(
      parts_.outbound, {.url = domain->events_url, .body = body_of(*search, parts[1], now)},
      webhook::secret_of(secret), fmt::format("{}-{}", search->id, parts[1]), now);
  ++(failure ? failed_ : told_);
  if (failure && !failure->final && firing.attempt < kMostAttempts)
    co_return store::fail(store::ErrorCode::unavailable, failure->why);
  if (failure)
    log::warning("manhunt: {} is not told that search {} is {}: {}", search->domain, search->id, parts[1],
                 failure->why);
  co_return store::Result<void>();
}

void Events::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_manhunt_events_total", "Events that the programs of domains have taken",
              static_cast<double>(told_));
  out.counter("tabella_manhunt_events_failed_total", "Calls by which they were told and that failed",
              static_cast<double>(failed_));
}

}  // namespace tabella::manhunt

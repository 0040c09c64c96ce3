#include "webhook/hooks.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "access/secrets.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"

namespace tabella::webhook {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kSetting = "webhook";
constexpr std::chrono::seconds kPatience{15};
constexpr std::chrono::seconds kLooksAgain{2};  // for hooks that other processes have added
constexpr int kMostAttempts = 12;
constexpr int kMostAtOnce = 8;  // calls of one hook

std::string seal_context(const std::string& id) { return "webhook " + id; }

std::string to_json(const Hook& hook) {
  std::string json;
  {
    JsonObjectWriter object(json);
    object.string("url", hook.url);
    object.string("secret", hook.secret);
    object.string("query", hook.query);
  }
  return json;
}

Hook from_json(const std::string& id, const std::string& text) {
  JsonDocument document;
  const auto json = document.parse(text);
  const auto member = [&](std::string_view name) {
    const auto value = json ? json->find(name) : std::nullopt;
    return value && value->kind() == JsonValue::Kind::string ? std::string(value->string()) : "";
  };
  return {.id = id, .url = member("url"), .secret = member("secret"), .query = member("query")};
}

std::vector<Hook> trusted(std::vector<Hook> hooks) {
  for (auto& hook : hooks) hook.trusted = true;
  return hooks;
}

}  // namespace

Hooks::Hooks(std::string system, Parts parts, std::vector<Hook> fixed, Render render)
    : system_(std::move(system)),
      kind_(system_ + "-webhook"),
      parts_(parts),
      fixed_(trusted(std::move(fixed))),
      render_(std::move(render)),
      places_(parts_.schedule, parts_.clock, kMostAtOnce) {
  parts_.schedule.on(kind_, [this](const schedule::Firing& firing) { return deliver(firing); });
}

Async<std::vector<Hook>> Hooks::all() {
  {
    const std::lock_guard lock(mutex_);
    if (known_at_ && parts_.clock.elapsed() - *known_at_ < kLooksAgain) co_return known_;
  }
  const auto asked_at = parts_.clock.elapsed();
  auto stored = co_await parts_.settings.all(kSetting);
  if (!stored) co_return store::error_of(stored);
  auto hooks = fixed_;
  for (const auto& [id, json] : *stored) hooks.push_back(from_json(id, json));
  const std::lock_guard lock(mutex_);
  known_ = hooks;
  known_at_ = asked_at;
  co_return hooks;
}

void Hooks::forget_known() {
  const std::lock_guard lock(mutex_);
  known_at_.reset();
}

Async<Hook> Hooks::add(Hook hook) {
  hook.trusted = false;
  if (const auto url = net::parse_url(hook.url); !url) co_return store::refuse(url.error());
  if (const auto url = parts_.outbound.check(hook.url); !url)
    co_return store::fail(store::ErrorCode::access_denied, url.error().message);
  hook.id = make_uuid();
  if (!hook.secret.empty()) {
    auto sealed = parts_.secrets.seal(hook.secret, seal_context(hook.id));
    if (!sealed) co_return store::fail(store::ErrorCode::unavailable, std::move(sealed).error());
    hook.secret = std::move(*sealed);
  }
  auto put = co_await parts_.settings.put(kSetting, hook.id, to_json(hook));
  if (!put) co_return store::error_of(put);
  forget_known();
  co_return hook;
}

Async<bool> Hooks::remove(std::string id) {
  auto removed = co_await parts_.settings.remove(kSetting, std::move(id));
  forget_known();
  co_return removed;
}

Async<void> Hooks::set_timer(const std::string& hook, const std::string& event) {
  co_return co_await parts_.schedule.put({.id = fmt::format("{}|{}|{}", kind_, hook, event),
                                          .kind = kind_,
                                          .at = parts_.clock.now(),
                                          .payload = hook + "|" + event});
}

Async<void> Hooks::announce(std::string event) {
  auto hooks = co_await all();
  if (!hooks) co_return store::error_of(hooks);
  for (const auto& hook : *hooks)
    if (auto set = co_await set_timer(hook.id, event); !set) co_return set;
  co_return store::Result<void>();
}

Async<bool> Hooks::replay(std::string event, std::string hook) {
  auto hooks = co_await all();
  if (!hooks) co_return store::error_of(hooks);
  if (std::ranges::find(*hooks, hook, &Hook::id) == hooks->end()) co_return false;
  if (auto set = co_await set_timer(hook, event); !set) co_return store::error_of(set);
  co_return true;
}

// Throws where it is to be tried again: that is how the schedule is told.
awaitable<void> Hooks::deliver(const schedule::Firing& firing) {
  const auto& payload = firing.timer.payload;
  const auto bar = payload.find('|');
  const auto event = payload.substr(bar + 1);
  const auto hooks = co_await all();
  if (!hooks) throw std::runtime_error(hooks.error().message);
  const auto hook = std::ranges::find(*hooks, payload.substr(0, bar), &Hook::id);
  if (hook == hooks->end()) co_return;
  const auto place = co_await places_.take(firing, hook->id);
  if (!place) throw std::runtime_error(place.error().message);
  if (!*place) co_return;
  auto rendered = co_await render_(*hook, event);
  if (!rendered) throw std::runtime_error(rendered.error().message);
  if (std::holds_alternative<NotThereYet>(*rendered)) throw std::runtime_error("the event is not there yet");
  if (auto* body = std::get_if<Body>(&*rendered))
    settle(*hook, co_await post(*hook, event, std::move(body->json)), firing.attempt);
}

awaitable<std::optional<Failure>> Hooks::post(const Hook& hook, const std::string& event, std::string body) {
  std::string key;
  if (!hook.secret.empty()) {
    auto secret = hook.trusted ? hook.secret : parts_.secrets.open(hook.secret, seal_context(hook.id));
    if (!secret) co_return Failure{.why = secret.error()};
    key = std::move(*secret);
  }
  co_return co_await call(
      parts_.outbound,
      {.url = hook.url, .body = std::move(body), .timeout = kPatience, .trusted = hook.trusted},
      std::move(key), event, parts_.clock.now());
}

void Hooks::settle(const Hook& hook, const std::optional<Failure>& failure, int attempt) {
  if (!failure) {
    ++delivered_;
    const std::lock_guard lock(mutex_);
    given_up_.erase(hook.id);
    return;
  }
  ++failed_;
  if (!failure->final && attempt < kMostAttempts) throw std::runtime_error(failure->why);
  const std::lock_guard lock(mutex_);
  // Once for a hook that is not there, and not for all events that it misses.
  if (given_up_.insert(hook.id).second)
    log::warning("the {} webhook {} is not told of an event: {} ({})", system_, hook.id, failure->why,
                 failure->final ? "not tried again" : fmt::format("after {} attempts", attempt));
}

void Hooks::write_metrics(metrics::Exposition& out) const {
  out.counter(fmt::format("tabella_{}_webhooks_total", system_), "Webhook calls that were taken",
              static_cast<double>(delivered_));
  out.counter(fmt::format("tabella_{}_webhooks_failed_total", system_), "Webhook calls that were not",
              static_cast<double>(failed_));
}

}  // namespace tabella::webhook

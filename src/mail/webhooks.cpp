#include "mail/webhooks.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "mail/summary.h"

namespace tabella::mail {

using store::Async;

namespace {

constexpr std::chrono::seconds kDeliveryTimeout{15};
constexpr std::chrono::seconds kLooksAgain{2};  // for hooks that other processes have added
constexpr int kMostAttempts = 12;

std::string to_json(const Webhook& hook) {
  std::string json;
  {
    JsonObjectWriter object(json);
    object.string("url", hook.url);
    object.string("secret", hook.secret);
    object.string("query", hook.query);
  }
  return json;
}

Webhook from_json(const std::string& id, const std::string& text) {
  JsonDocument document;
  const auto json = document.parse(text);
  Webhook hook{.id = id};
  if (!json) return hook;
  hook.url = string_member(*json, "url");
  hook.secret = string_member(*json, "secret");
  hook.query = string_member(*json, "query");
  return hook;
}

}  // namespace

std::string webhook_signature(const std::string& secret, const std::string& id, const std::string& timestamp,
                              const std::string& body) {
  // whsec_… is base64 of the key itself; anything else is the key.
  std::string key = secret;
  if (key.starts_with("whsec_"))
    if (const auto decoded = from_base64(key.substr(6))) key = *decoded;
  return "v1," + to_base64(hmac_sha256(key, id + "." + timestamp + "." + body));
}

Webhooks::Webhooks(Mail& mail, Settings& settings, schedule::Schedule& schedule, std::vector<Webhook> fixed)
    : mail_(mail), settings_(settings), schedule_(schedule), fixed_(std::move(fixed)) {
  schedule_.on(kKind, [this](const schedule::Firing& firing) { return deliver(firing); });
}

Async<std::vector<Webhook>> Webhooks::all() {
  {
    const std::lock_guard lock(mutex_);
    if (known_once_ && mail_.clock().elapsed() - known_since_ < kLooksAgain) co_return known_;
  }
  auto stored = co_await settings_.all("webhook");
  if (!stored) co_return store::error_of(stored);
  auto hooks = fixed_;
  for (const auto& [id, json] : *stored) hooks.push_back(from_json(id, json));
  const std::lock_guard lock(mutex_);
  known_ = hooks;
  known_since_ = mail_.clock().elapsed();
  known_once_ = true;
  co_return hooks;
}

Async<Webhook> Webhooks::add(Webhook hook) {
  hook.id = make_uuid();
  auto put = co_await settings_.put("webhook", hook.id, to_json(hook));
  if (!put) co_return store::error_of(put);
  const std::lock_guard lock(mutex_);
  known_once_ = false;
  co_return hook;
}

Async<bool> Webhooks::remove(std::string id) {
  auto removed = co_await settings_.remove("webhook", std::move(id));
  const std::lock_guard lock(mutex_);
  known_once_ = false;
  co_return removed;
}

Async<void> Webhooks::announce(const std::string& id) {
  auto hooks = co_await all();
  if (!hooks) co_return store::error_of(hooks);
  for (const auto& hook : *hooks) {
    auto put = co_await schedule_.put({.id = fmt::format("{}|{}|{}", kKind, hook.id, id),
                                       .kind = kKind,
                                       .at = mail_.clock().now(),
                                       .payload = hook.id + "|" + id});
    if (!put) co_return put;
  }
  co_return store::Result<void>();
}

boost::asio::awaitable<void> Webhooks::deliver(const schedule::Firing& firing) {
  const auto bar = firing.timer.payload.find('|');
  const auto hook_id = firing.timer.payload.substr(0, bar);
  const auto id = firing.timer.payload.substr(bar + 1);
  const auto hooks = co_await all();
  if (!hooks) throw std::runtime_error(hooks.error().message);
  const auto hook = std::ranges::find(*hooks, hook_id, &Webhook::id);
  if (hook == hooks->end()) co_return;
  auto message = co_await mail_.load(id);
  if (!message) throw std::runtime_error(message.error().message);
  if (!*message) {
    // It may be on its way; a timer is set before its message is kept.
    constexpr std::chrono::minutes kSlack{1};
    const auto waited = std::chrono::nanoseconds(mail_.now() - created_of(id).value_or(0));
    if (waited < mail_.options().settle + kSlack) throw std::runtime_error("the message is not there yet");
    co_return;
  }
  if (!hook->query.empty()) {
    const auto filter = parse_query(hook->query, mail_.clock().now());
    const auto document = co_await mail_.document(**message);
    if (!document) throw std::runtime_error(document.error().message);
    if (!filter || !matches(*filter, **document, labels_of(**message))) co_return;
  }
  try {
    co_await post(*hook, **message);
    ++delivered_;
  } catch (const std::exception& error) {
    ++failed_;
    if (firing.attempt < kMostAttempts) throw;
    log::warning("the webhook {} did not take a message after {} attempts: {}", hook->url, firing.attempt,
                 error.what());
  }
}

std::shared_ptr<net::HttpClient> Webhooks::client_for(const net::Url& url) {
  const std::lock_guard lock(mutex_);
  auto& client = clients_[fmt::format("{}|{}|{}", url.tls, url.host, url.port)];
  if (!client)
    client = std::make_shared<net::HttpClient>(
        url, net::ClientOptions{.max_connections = 16, .max_body = 1u << 20});
  return client;
}

boost::asio::awaitable<void> Webhooks::post(const Webhook& hook, const Message& message) {
  const auto url = net::parse_url(hook.url);
  if (!url) throw std::runtime_error(url.error());
  std::string body;
  {
    JsonObjectWriter object(body);
    object.string("type", "message.received");
    object.string("timestamp", time_text(message.created));
    append_summary_json(object.key("data"), message);
  }
  const auto timestamp = std::to_string(epoch_milliseconds(mail_.clock().now()) / 1000);
  auto head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Tabella\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\nwebhook-id: {}\r\nwebhook-timestamp: {}\r\n",
      url->path, url->authority(), body.size(), message.id, timestamp);
  if (!hook.secret.empty())
    head +=
        fmt::format("webhook-signature: {}\r\n", webhook_signature(hook.secret, message.id, timestamp, body));
  head += "\r\n";
  const auto client = client_for(*url);
  const auto reply = co_await client->send(head, body, std::chrono::steady_clock::now() + kDeliveryTimeout);
  if (!reply) throw std::runtime_error(reply.error().message);
  if (reply->status() < 200 || reply->status() >= 300)
    throw std::runtime_error(fmt::format("it answered {}", reply->status()));
}

void Webhooks::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_mail_webhooks_total", "Webhook calls that were taken",
              static_cast<double>(delivered_));
  out.counter("tabella_mail_webhooks_failed_total", "Webhook calls that were not",
              static_cast<double>(failed_));
}

}  // namespace tabella::mail

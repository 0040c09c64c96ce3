#include "net/outbound.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/text.h"
#include "net/client.h"
#include "net/target.h"
#include "net/transport.h"

namespace tabella::net {

using boost::asio::awaitable;
using Deadline = std::chrono::steady_clock::time_point;
using Reply = std::expected<OutboundReply, OutboundError>;

namespace {

constexpr size_t kMostServers = 256;       // whose connections are kept
constexpr size_t kConnectionsToEach = 16;  // on each thread

constexpr size_t kLargestBody = 1u << 30;  // whatever the request says

// Ours to say.
constexpr std::string_view kFraming[] = {"connection", "content-length", "expect",
                                         "host",       "keep-alive",     "te",
                                         "trailer",    "upgrade",        "transfer-encoding"};
// Not for another origin.
constexpr std::string_view kCredentials[] = {"authorization", "cookie", "webhook-signature", "x-api-key"};
// Of a body.
constexpr std::string_view kContent[] = {"content-encoding", "content-language", "content-location",
                                         "content-type", "digest"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view one) { return same_header(one, name); });
}

void drop(OutboundHeaders& headers, std::span<const std::string_view> names) {
  std::erase_if(headers, [&](const auto& header) { return is_one_of(names, header.first); });
}

std::string_view find(const OutboundHeaders& headers, std::string_view name) {
  const auto found =
      std::ranges::find_if(headers, [&](const auto& header) { return same_header(header.first, name); });
  return found == headers.end() ? std::string_view() : found->second;
}

std::unexpected<OutboundError> refuse(std::string message) {
  return std::unexpected(OutboundError{.refused = true, .message = std::move(message)});
}

std::unexpected<OutboundError> fail(std::string message) {
  return std::unexpected(OutboundError{.refused = false, .message = std::move(message)});
}

// Nothing that would end a line, or say twice how long the request is.
std::expected<void, OutboundError> check_head(const OutboundRequest& request) {
  if (!is_token(request.method) || request.method == "CONNECT")
    return refuse("the method of the request is none");
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || !is_field_value(value)) return refuse("a header of the request cannot be sent");
    if (is_one_of(kFraming, name) || lower(name).starts_with("proxy-"))
      return refuse(fmt::format("the header {} is not for the caller to say", name));
  }
  return {};
}

bool is_on_this_machine(const Url& url) {
  const auto literal = literal_address(url.host);
  return literal ? literal->is_loopback() : url.host == "localhost" || url.host.ends_with(".localhost");
}

struct Proxy {
  Url url;
  std::string authorization;  // the value of Proxy-Authorization; empty: none
};

std::string decoded(std::string_view text) { return percent_decode(text, false).value_or(std::string(text)); }

Proxy read_proxy(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const auto wrong = [] {
    return std::runtime_error(
        "the proxy for outbound requests is not like http://HOST:PORT or http://USER:PASSWORD@HOST:PORT");
  };
  if (!text.starts_with(kScheme)) throw wrong();
  auto rest = std::string_view(text).substr(kScheme.size());
  Proxy proxy;
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    const auto user = rest.substr(0, at);
    const auto colon = std::min(user.find(':'), user.size());
    proxy.authorization =
        "Basic " + to_base64(fmt::format("{}:{}", decoded(user.substr(0, colon)),
                                         decoded(user.substr(std::min(colon + 1, user.size())))));
    rest.remove_prefix(at + 1);
  }
  const auto url = parse_url(fmt::format("{}{}", kScheme, rest));
  if (!url || url->path != "/") throw wrong();
  proxy.url = *url;
  return proxy;
}

// The clients of the servers that were asked last. Thread-safe.
class Clients {
 public:
  // `key` tells apart what must not share connections.
  template <class Make>
  std::shared_ptr<HttpClient> of(const std::string& key, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      by_use_.splice(by_use_.begin(), by_use_, known->second);
      return known->second->client;
    }
    by_use_.push_front({key, make()});
    by_key_[key] = by_use_.begin();
    if (by_use_.size() > kMostServers) {
      by_key_.erase(by_use_.back().key);
      by_use_.pop_back();
    }
    return by_use_.front().client;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<HttpClient> client;
  };
  std::mutex mutex_;
  std::list<Entry> by_use_;  // the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

AddressRules make_rules(AddressRules::Options options) {
  auto rules = AddressRules::make(std::move(options));
  if (!rules) throw std::runtime_error("--outbound-allow: " + rules.error());
  return std::move(*rules);
}

// Where an answer sends us; nothing if it does not.
std::optional<std::string_view> redirect_of(const OutboundReply& reply) {
  switch (reply.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: break;
    default: return std::nullopt;
  }
  const auto location = reply.header("location");
  return location.empty() ? std::nullopt : std::optional(location);
}

// Makes of a request that was answered with `status` the one that follows it.
void follow(OutboundRequest& request, int status, bool same_origin) {
  const bool becomes_get =
      status == 303 ? request.method != "HEAD" : (status == 301 || status == 302) && request.method == "POST";
  if (becomes_get) {
    request.method = "GET";
    request.body.clear();
    drop(request.headers, kContent);
  }
  if (same_origin) return;
  drop(request.headers, kCredentials);
  request.trusted = false;
}

std::string head_of(const OutboundRequest& request, const Url& url, const std::string& target,
                    const std::string& proxy_authorization) {
  auto head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, target, url.authority());
  if (!proxy_authorization.empty()) head += fmt::format("Proxy-Authorization: {}\r\n", proxy_authorization);
  if (find(request.headers, "user-agent").empty()) head += "User-Agent: Tabella\r\n";
  if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD"))
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

}  // namespace

std::string_view OutboundReply::header(std::string_view name) const { return find(headers, name); }

struct Outbound::Impl {
  explicit Impl(Options options)
      : rules(make_rules(std::move(options.rules))),
        trust(std::make_shared<const TlsTrust>(options.ca_file)) {
    if (!options.proxy.empty()) proxy = read_proxy(options.proxy);
  }

  const Proxy* proxy_for(const Url& url) const {
    return proxy && !is_on_this_machine(url) ? &*proxy : nullptr;
  }
  std::expected<void, OutboundError> check(Url& url, bool trusted) const;
  std::shared_ptr<HttpClient> client_for(const Url& url, bool trusted);
  awaitable<Reply> exchange(const OutboundRequest& request, const Url& url, Deadline deadline);

  const AddressRules rules;
  const std::shared_ptr<const TlsTrust> trust;
  std::optional<Proxy> proxy;
  Clients clients;
};

// Hosts are spelled as everybody spells them from here on: proxies and we are to understand the same.
std::expected<void, OutboundError> Outbound::Impl::check(Url& url, bool trusted) const {
  if (url.host.ends_with('.')) url.host.pop_back();
  const auto literal = literal_address(url.host);
  if (!literal) return {};
  url.host = literal->to_string();
  if (trusted) return {};
  auto checked = rules.check(url.host, *literal);
  if (!checked) return refuse(std::move(checked).error());
  return {};
}

std::shared_ptr<HttpClient> Outbound::Impl::client_for(const Url& url, bool trusted) {
  ClientOptions options{.max_connections = kConnectionsToEach, .max_body = kLargestBody, .trust = trust};
  const auto* by = proxy_for(url);
  if (by && !url.tls)
    return clients.of("proxy", [&] { return std::make_shared<HttpClient>(by->url, std::move(options)); });
  // A connection that was made without rules is not for those who have to keep them.
  if (by)
    options.tunnel = Tunnel{.proxy = by->url, .authorization = by->authorization};
  else if (!trusted)
    options.rules = &rules;
  return clients.of(fmt::format("{} {}", url.origin(), trusted ? "trusted" : ""),
                    [&] { return std::make_shared<HttpClient>(url, std::move(options)); });
}

awaitable<Reply> Outbound::Impl::exchange(const OutboundRequest& request, const Url& url, Deadline deadline) {
  const auto* by = url.tls ? nullptr : proxy_for(url);
  const auto head = by ? head_of(request, url, url.origin() + url.path, by->authorization)
                       : head_of(request, url, url.path, "");
  const auto client = client_for(url, request.trusted);
  const auto reply = co_await client->send(head, request.body, deadline, request.max_body);
  if (!reply)
    co_return std::unexpected(
        OutboundError{.refused = reply.error().refused,
                      .may_have_come = reply.error().stage >= ClientError::Stage::waiting,
                      .message = reply.error().message});
  OutboundReply whole{.status = reply->status(), .headers = {}, .body = std::string(reply->body())};
  for (const auto& [name, value] : reply->headers()) whole.headers.emplace_back(name, value);
  co_return whole;
}

Outbound::Outbound(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Outbound::~Outbound() = default;

const AddressRules& Outbound::rules() const { return impl_->rules; }

std::expected<Url, OutboundError> Outbound::check(std::string_view text) const {
  auto url = parse_url(text);
  if (!url) return refuse(std::move(url).error());
  if (auto checked = impl_->check(*url, false); !checked) return std::unexpected(std::move(checked).error());
  return std::move(*url);
}

awaitable<Reply> Outbound::send(OutboundRequest request) {
  const auto deadline = std::chrono::steady_clock::now() + request.timeout;
  if (auto checked = check_head(request); !checked) co_return std::unexpected(std::move(checked).error());
  auto url = parse_url(request.url);
  if (!url) co_return refuse(std::move(url).error());
  for (int left = request.redirects;; --left) {
    if (auto checked = impl_->check(*url, request.trusted); !checked)
      co_return std::unexpected(std::move(checked).error());
    auto reply = co_await impl_->exchange(request, *url, deadline);
    const auto location = reply && request.redirects > 0 ? redirect_of(*reply) : std::nullopt;
    if (!location) co_return reply;
    if (left == 0)
      co_return fail(fmt::format("{} redirects more than {} times", url->host, request.redirects));
    auto next = resolve_url(*url, *location);
    if (!next) co_return refuse(fmt::format("{} redirects to what is no address on the web", url->host));
    if (url->tls && !next->tls)
      co_return refuse(fmt::format("{} redirects from https to http, which is not followed", url->host));
    follow(request, reply->status, next->origin() == url->origin());
    url = std::move(next);
  }
}

}  // namespace tabella::net

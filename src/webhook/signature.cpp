#include "webhook/signature.h"

#include <charconv>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/text.h"

namespace tabella::webhook {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::chrono::minutes kTolerance{5};

std::string key_of(std::string_view secret) {
  if (secret.starts_with(kPrefix))
    if (auto decoded = from_base64(secret.substr(kPrefix.size()))) return std::move(*decoded);
  return std::string(secret);
}

bool is_about(std::string_view timestamp, TimePoint now) {
  int64_t seconds = 0;
  const auto* end = timestamp.data() + timestamp.size();
  const auto [read, error] = std::from_chars(timestamp.data(), end, seconds);
  if (error != std::errc{} || read != end) return false;
  const auto allowed = std::chrono::seconds(kTolerance).count();
  const auto expected = epoch_milliseconds(now) / 1000;
  return seconds >= expected - allowed && seconds <= expected + allowed;
}

}  // namespace

std::string sign(std::string_view secret, const Signed& call) {
  return "v1," +
         to_base64(hmac_sha256(key_of(secret), fmt::format("{}.{}.{}", call.id, call.timestamp, call.body)));
}

std::string secret_of(std::string_view secret) {
  return "whsec_" + to_base64(hmac_sha256(secret, "webhooks"));
}

void add_headers(net::OutboundRequest& request, std::string_view secret, std::string_view id, TimePoint now) {
  const auto timestamp = std::to_string(epoch_milliseconds(now) / 1000);
  request.headers.emplace_back("webhook-id", id);
  request.headers.emplace_back("webhook-timestamp", timestamp);
  if (!secret.empty())
    request.headers.emplace_back("webhook-signature",
                                 sign(secret, {.id = id, .timestamp = timestamp, .body = request.body}));
}

bool verify(std::string_view secret, const Signed& call, std::string_view signatures, TimePoint now) {
  if (!is_about(call.timestamp, now)) return false;
  const auto expected = sign(secret, call);
  bool found = false;
  for (const auto one : split(signatures, ' ')) found |= equal_in_constant_time(one, expected);
  return found;
}

}  // namespace tabella::webhook

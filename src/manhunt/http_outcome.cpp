#include "manhunt/http_outcome.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace tabella::manhunt {
namespace {

constexpr std::chrono::seconds kMostRetryAfter{300};

// "…, code 21211: The 'To' number … is not a valid phone number"
std::string explanation(const net::OutboundReply& reply) {
  JsonDocument document;
  const auto json = document.parse(reply.body);
  if (!json || !json->is_object()) return fmt::format("it answered {}", reply.status);
  const auto code = json->find("code");
  const auto message = printable(json->text("message").substr(0, 300));
  return fmt::format("it answered {}{}{}{}", reply.status,
                     code && code->is_number() ? fmt::format(", code {}", code->integer()) : "",
                     message.empty() ? "" : ": ", message);
}

}  // namespace

Sent sent_by_http(const std::expected<net::OutboundReply, net::OutboundError>& reply) {
  if (!reply)
    return {.outcome = reply.error().may_have_come ? Outcome::unknown : Outcome::failed,
            .detail = reply.error().message};
  if (reply->status / 100 == 2) return {};
  Sent sent{.outcome = reply->status >= 500 ? Outcome::unknown : Outcome::failed,
            .detail = explanation(*reply)};
  if (reply->status == 429) {
    int64_t seconds = 1;
    const auto header = reply->header("retry-after");
    std::from_chars(header.data(), header.data() + header.size(), seconds);
    sent.retry_after = std::chrono::seconds(std::clamp<int64_t>(seconds, 1, kMostRetryAfter.count()));
  }
  return sent;
}

}  // namespace tabella::manhunt

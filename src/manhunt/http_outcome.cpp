#include "manhunt/http_outcome.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace tabella::manhunt {
namespace {

constexpr std::chrono::seconds kMostRetryAfter = std::chrono::minutes{5};  // others wait for it

// "Wed, 21 Oct 2026 07:28:00 GMT"
std::optional<int64_t> seconds_of_date(std::string_view text) {
  std::tm time{};
  const bool is_date = strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time) != nullptr;
  return is_date ? std::optional<int64_t>(timegm(&time)) : std::nullopt;
}

// In seconds, or a date, which is compared with the answer's own.
std::chrono::seconds retry_after(const net::OutboundReply& reply) {
  const auto header = reply.header("retry-after");
  int64_t seconds = 1;
  const auto until = seconds_of_date(header);
  const auto now = seconds_of_date(reply.header("date"));
  if (until && now)
    seconds = *until - *now;
  else
    std::from_chars(header.data(), header.data() + header.size(), seconds);
  return std::chrono::seconds(std::clamp<int64_t>(seconds, 1, kMostRetryAfter.count()));
}

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
  if (reply->status == 429) sent.retry_after = retry_after(*reply);
  return sent;
}

}  // namespace tabella::manhunt

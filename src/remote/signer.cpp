#include "remote/signer.h"

#include <array>
#include <ctime>

#include "protocol/signature.h"

namespace tabella::remote {
namespace {

constexpr std::string_view kService = "dynamodb";
// AWS takes a quarter of an hour.
constexpr std::chrono::minutes kTolerated{4};

}  // namespace

std::shared_ptr<const Signer::Key> Signer::key_for(const std::shared_ptr<const Credentials>& credentials,
                                                   std::string_view date) {
  const std::lock_guard lock(mutex_);
  if (!key_ || key_->credentials != credentials || key_->date != date)
    key_ = std::make_shared<const Key>(
        Key{.credentials = credentials,
            .date = std::string(date),
            .key = protocol::signing_key(credentials->secret_key,
                                         {.date = date, .region = region_, .service = kService})});
  return key_;
}

TimePoint Signer::append_headers(std::string& out, const std::shared_ptr<const Credentials>& credentials,
                                 std::string_view host, std::string_view target, std::string_view body) {
  const auto now = clock_.now() + skew_.load();
  const auto time = protocol::basic_date(std::chrono::system_clock::to_time_t(now));
  const auto key = key_for(credentials, std::string_view(time).substr(0, 8));
  const std::array<std::pair<std::string_view, std::string_view>, 4> headers = {
      {{"host", host},
       {"x-amz-date", time},
       {"x-amz-target", target},
       {"x-amz-security-token", credentials->session_token}}};
  const bool token = !credentials->session_token.empty();
  const std::string_view signed_headers =
      token ? "host;x-amz-date;x-amz-security-token;x-amz-target" : "host;x-amz-date;x-amz-target";
  const auto signature = protocol::signature(
      {.method = "POST", .target = "/", .headers = headers, .signed_headers = signed_headers, .body = body},
      time, {.date = key->date, .region = region_, .service = kService}, key->key);
  out.append("X-Amz-Date: ").append(time).append("\r\n");
  if (token) out.append("X-Amz-Security-Token: ").append(credentials->session_token).append("\r\n");
  out.append("Authorization: ").append(protocol::kSignatureAlgorithm).append(" Credential=");
  out.append(credentials->access_key).append("/").append(key->date).append("/").append(region_);
  out.append("/").append(kService).append("/aws4_request, SignedHeaders=").append(signed_headers);
  out.append(", Signature=").append(signature).append("\r\n");
  return now;
}

bool Signer::correct_by(std::string_view date, TimePoint signed_at) {
  std::tm tm{};
  const std::string copy(date);
  if (!strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S", &tm)) return false;
  const auto theirs = time_at(timegm(&tm) * 1000);
  // Half as far as a TimePoint reaches: a difference of two such cannot overflow.
  constexpr std::chrono::hours kLikely{24 * 365 * 100};
  if (theirs.time_since_epoch() > kLikely || theirs.time_since_epoch() < -kLikely) return false;
  skew_ = std::chrono::duration_cast<std::chrono::seconds>(theirs - clock_.now());
  return theirs - signed_at > kTolerated || signed_at - theirs > kTolerated;
}

}  // namespace tabella::remote

// AWS Signature Version 4: what both sides of a request compute. sigv4.h checks signatures, remote/ makes
// them.
#pragma once

#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tabella::protocol {

inline constexpr std::string_view kSignatureAlgorithm = "AWS4-HMAC-SHA256";

// "20130609T100759Z"
std::string basic_date(std::time_t time);
std::optional<std::time_t> parse_basic_date(std::string_view text);

struct SignedRequest {
  std::string_view method;
  std::string_view target;  // path and query, as sent
  std::span<const std::pair<std::string_view, std::string_view>> headers;
  std::string_view signed_headers;  // "host;x-amz-date"
  std::string_view body;
};

// The form that is signed: the path without dots and doubled slashes, the query sorted, values trimmed with
// runs of blanks as one, several headers of one name joined.
std::string canonical_request(const SignedRequest& request);

// What a signature is good for: one day, one region, one service.
struct SignatureScope {
  std::string_view date;  // yyyymmdd
  std::string_view region;
  std::string_view service;
};

// Holds for a scope: to be kept, it is the dearer half of a signature.
std::string signing_key(std::string_view secret, const SignatureScope& scope);

// In hexadecimal digits. `time` as in basic_date().
std::string signature(const SignedRequest& request, std::string_view time, const SignatureScope& scope,
                      std::string_view signing_key);

}  // namespace tabella::protocol

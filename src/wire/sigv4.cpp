#include "wire/sigv4.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/text.h"
#include "protocol/signature.h"

namespace tabella::wire {
namespace {

using net::HttpRequest;
using protocol::basic_date;

constexpr std::time_t kMaxSkew = 15 * 60;

std::unexpected<WireError> refuse(std::string_view type, std::string message) {
  return std::unexpected(service_error(type, std::move(message)));
}

// The value of "name=value" among the parameters, which blanks or commas separate.
std::string_view parameter(std::string_view header, std::string_view name) {
  for (size_t at = header.find(name); at != std::string_view::npos; at = header.find(name, at + 1)) {
    const bool starts = at > 0 && (header[at - 1] == ' ' || header[at - 1] == ',');
    const size_t equals = at + name.size();
    if (!starts || equals >= header.size() || header[equals] != '=') continue;
    const auto value = header.substr(equals + 1);
    return value.substr(0, value.find_first_of(", "));
  }
  return {};
}

std::string_view date_header(const HttpRequest& request) {
  const auto amz = request.header("x-amz-date");
  return amz.empty() ? request.header("date") : amz;
}

// In whole seconds: a time point counts nanoseconds, and the year 2500 does not fit.
Wire<> check_time(std::string_view text, std::time_t now) {
  const auto at = protocol::parse_basic_date(text);
  if (!at)
    return refuse("IncompleteSignatureException",
                  fmt::format("Date must be in ISO-8601 'basic format'. Got '{}'. See "
                              "http://en.wikipedia.org/wiki/ISO_8601",
                              text));
  if (*at < now - kMaxSkew)
    return refuse("InvalidSignatureException",
                  fmt::format("Signature expired: {} is now earlier than {} ({} - 15 min.)", text,
                              basic_date(now - kMaxSkew), basic_date(now)));
  if (*at > now + kMaxSkew)
    return refuse("InvalidSignatureException",
                  fmt::format("Signature not yet current: {} is still later than {} ({} + 15 min.)", text,
                              basic_date(now + kMaxSkew), basic_date(now)));
  return {};
}

}  // namespace

Wire<Authorization> parse_authorization(const HttpRequest& request) {
  const auto header = request.header("authorization");
  if (!header.starts_with("AWS4-"))
    return refuse("MissingAuthenticationTokenException", "Request is missing Authentication Token");
  const auto credential = parameter(header, "Credential");
  Authorization auth;
  auth.signature = parameter(header, "Signature");
  auth.signed_headers = parameter(header, "SignedHeaders");
  std::string missing;
  for (const auto& [name, value] :
       {std::pair("Credential", credential), std::pair("Signature", auth.signature),
        std::pair("SignedHeaders", auth.signed_headers)})
    if (value.empty()) missing.append(fmt::format("Authorization header requires '{}' parameter. ", name));
  if (date_header(request).empty())
    missing.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ");
  if (!missing.empty())
    return refuse("IncompleteSignatureException", fmt::format("{}Authorization={}", missing, header));
  auth.credential = credential;
  return auth;
}

Wire<> SignatureVerifier::verify(const HttpRequest& request) const {
  TABELLA_ASSIGN(const auto auth, parse_authorization(request));
  const auto header = request.header("authorization");
  const auto date = date_header(request);
  TABELLA_TRY(check_time(date, std::chrono::system_clock::to_time_t(clock_.now())));
  if (!header.starts_with(protocol::kSignatureAlgorithm))
    return refuse("IncompleteSignatureException",
                  fmt::format("Unsupported AWS 'algorithm': '{}' (only AWS4-HMAC-SHA256 for now). ",
                              header.substr(0, header.find(' '))));
  const auto scope = split(auth.credential, '/');
  if (scope.size() != 5)
    return refuse("IncompleteSignatureException",
                  fmt::format("Credential must have exactly 5 slash-delimited elements, e.g. "
                              "keyid/date/region/service/term, got '{}'",
                              auth.credential));
  if (!date.starts_with(scope[1]))
    return refuse(
        "InvalidSignatureException",
        fmt::format("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
                    "HTTP: '{}' != '{}', from '{}'.",
                    scope[1], date.substr(0, 8), date));
  if (scope[3] != "dynamodb")
    return refuse("InvalidSignatureException",
                  "Credential should be scoped to correct service: 'dynamodb'. ");
  if (scope[4] != "aws4_request")
    return refuse(
        "InvalidSignatureException",
        fmt::format("Credential should be scoped with a valid terminator: 'aws4_request', not '{}'. ",
                    scope[4]));
  const auto names = split(auth.signed_headers, ';');
  if (std::ranges::find(names, "host") == names.end())
    return refuse("InvalidSignatureException", "'Host' must be a 'SignedHeader' in the AWS Authorization.");
  // Else the signature of one operation would do for another.
  if (request.has_header("x-amz-target") && std::ranges::find(names, "x-amz-target") == names.end())
    return refuse("InvalidSignatureException",
                  "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");
  const auto secret = secrets_.find(scope[0]);
  if (secret == secrets_.end())
    return refuse("UnrecognizedClientException", "The security token included in the request is invalid.");
  const protocol::SignatureScope of{.date = scope[1], .region = scope[2], .service = scope[3]};
  const auto expected = protocol::signature({.method = request.method,
                                             .target = request.target,
                                             .headers = request.headers,
                                             .signed_headers = auth.signed_headers,
                                             .body = request.body},
                                            date, of, protocol::signing_key(secret->second, of));
  if (!equal_in_constant_time(expected, auth.signature))
    return refuse(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details.");
  return {};
}

}  // namespace tabella::wire

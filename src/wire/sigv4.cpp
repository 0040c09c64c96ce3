#include "wire/sigv4.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/text.h"
#include "net/target.h"
#include "protocol/signature.h"

namespace tabella::wire {
namespace {

using net::HttpRequest;
using protocol::basic_date;

constexpr std::time_t kMaxSkew = 15 * 60;
constexpr std::time_t kMaxLifetime = 7 * 24 * 60 * 60;

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

// A parameter of a query string, as sent; nothing if it is not there.
std::optional<std::string_view> query_parameter(std::string_view query, std::string_view name) {
  for (const auto part : split(query, '&')) {
    const auto equals = std::min(part.find('='), part.size());
    if (part.substr(0, equals) == name) return part.substr(std::min(equals + 1, part.size()));
  }
  return std::nullopt;
}

Result<Authorization> parse_header(const HttpRequest& request, std::string_view header) {
  if (!header.starts_with("AWS4-"))
    return refuse("MissingAuthenticationTokenException", "Request is missing Authentication Token");
  Authorization auth;
  auth.algorithm = header.substr(0, header.find(' '));
  auth.credential = parameter(header, "Credential");
  auth.signature = parameter(header, "Signature");
  auth.signed_headers = parameter(header, "SignedHeaders");
  auth.date = date_header(request);
  std::string missing;
  for (const auto& [name, value] :
       {std::pair("Credential", auth.credential), std::pair("Signature", auth.signature),
        std::pair("SignedHeaders", auth.signed_headers)})
    if (value.empty()) missing.append(fmt::format("Authorization header requires '{}' parameter. ", name));
  if (auth.date.empty())
    missing.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ");
  if (!missing.empty())
    return refuse("IncompleteSignatureException", fmt::format("{}Authorization={}", missing, header));
  return auth;
}

Result<Authorization> parse_query(std::string_view query) {
  std::string missing;
  const auto needed = [&](std::string_view name) {
    const auto value = query_parameter(query, name).value_or("");
    if (value.empty()) missing.append(fmt::format("AWS query-string parameters must include '{}'. ", name));
    return value;
  };
  Authorization auth;
  auth.presigned = true;
  auth.algorithm = needed("X-Amz-Algorithm");
  auth.credential = needed("X-Amz-Credential");
  auth.signature = needed("X-Amz-Signature");
  auth.signed_headers = needed("X-Amz-SignedHeaders");
  auth.date = needed("X-Amz-Date");
  auth.expires = query_parameter(query, "X-Amz-Expires").value_or("");
  if (!missing.empty())
    return refuse("IncompleteSignatureException", missing + "Re-examine the query-string parameters.");
  return auth;
}

std::string plain(std::string_view text, const Authorization& auth) {
  if (!auth.presigned) return std::string(text);
  return net::percent_decode(text, false).value_or("");
}

// For how many seconds a signature is good, one way.
Result<std::time_t> lifetime_of(const Authorization& auth) {
  if (auth.expires.empty()) return kMaxSkew;
  const auto bad = [](std::string_view what) {
    return refuse("IncompleteSignatureException", fmt::format("X-Amz-Expires {}", what));
  };
  int64_t seconds = 0;
  const auto* end = auth.expires.data() + auth.expires.size();
  const auto [stop, error] = std::from_chars(auth.expires.data(), end, seconds);
  if (error != std::errc{} || stop != end) return bad("should be a number");
  if (seconds < 0) return bad("must be non-negative");
  if (seconds > kMaxLifetime)
    return bad(
        fmt::format("must be less than a week (in seconds); that is, the given X-Amz-Expires must be "
                    "less than {} seconds",
                    kMaxLifetime));
  return seconds;
}

// In whole seconds: a time point counts nanoseconds, and the year 2500 does not fit.
Result<> check_time(const Authorization& auth, std::time_t now) {
  const auto at = protocol::parse_basic_date(auth.date);
  if (!at)
    return refuse("IncompleteSignatureException",
                  fmt::format("Date must be in ISO-8601 'basic format'. Got '{}'. See "
                              "http://en.wikipedia.org/wiki/ISO_8601",
                              auth.date));
  TABELLA_ASSIGN(const auto lifetime, lifetime_of(auth));
  if (*at < now - lifetime)
    return refuse("InvalidSignatureException",
                  fmt::format("Signature expired: {} is now earlier than {} ({} - {})", auth.date,
                              basic_date(now - lifetime), basic_date(now),
                              auth.expires.empty() ? "15 min." : fmt::format("{} sec.", lifetime)));
  if (*at > now + kMaxSkew)
    return refuse("InvalidSignatureException",
                  fmt::format("Signature not yet current: {} is still later than {} ({} + 15 min.)",
                              auth.date, basic_date(now + kMaxSkew), basic_date(now)));
  return {};
}

// What of the target is signed: all but the signature itself.
std::string signed_target(std::string_view target) {
  const auto question = std::min(target.find('?'), target.size());
  std::string out(target.substr(0, question));
  char separator = '?';
  for (const auto part : split(target.substr(std::min(question + 1, target.size())), '&')) {
    if (part.starts_with("X-Amz-Signature=")) continue;
    out.push_back(separator);
    out.append(part);
    separator = '&';
  }
  return out;
}

}  // namespace

Result<Authorization> parse_authorization(const HttpRequest& request) {
  const auto header = request.header("authorization");
  const auto question = request.target.find('?');
  if (question == std::string_view::npos) return parse_header(request, header);
  const auto query = request.target.substr(question + 1);
  if (!query_parameter(query, "X-Amz-Algorithm")) return parse_header(request, header);
  if (!header.empty())
    return refuse("InvalidSignatureException",
                  "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.");
  return parse_query(query);
}

Result<> SignatureVerifier::verify(const HttpRequest& request) const {
  TABELLA_ASSIGN(const auto auth, parse_authorization(request));
  TABELLA_TRY(check_time(auth, std::chrono::system_clock::to_time_t(clock_.now())));
  if (!auth.algorithm.starts_with(protocol::kSignatureAlgorithm))
    return refuse(
        "IncompleteSignatureException",
        fmt::format("Unsupported AWS 'algorithm': '{}' (only AWS4-HMAC-SHA256 for now). ", auth.algorithm));
  const auto credential = plain(auth.credential, auth);
  const auto signed_headers = plain(auth.signed_headers, auth);
  const auto scope = split(credential, '/');
  if (scope.size() != 5)
    return refuse("IncompleteSignatureException",
                  fmt::format("Credential must have exactly 5 slash-delimited elements, e.g. "
                              "keyid/date/region/service/term, got '{}'",
                              credential));
  if (!auth.date.starts_with(scope[1]))
    return refuse(
        "InvalidSignatureException",
        fmt::format("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
                    "HTTP: '{}' != '{}', from '{}'.",
                    scope[1], auth.date.substr(0, 8), auth.date));
  if (scope[3] != "dynamodb")
    return refuse("InvalidSignatureException",
                  "Credential should be scoped to correct service: 'dynamodb'. ");
  if (scope[4] != "aws4_request")
    return refuse(
        "InvalidSignatureException",
        fmt::format("Credential should be scoped with a valid terminator: 'aws4_request', not '{}'. ",
                    scope[4]));
  const auto names = split(signed_headers, ';');
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
  const auto target = auth.presigned ? signed_target(request.target) : std::string(request.target);
  const auto expected = protocol::signature({.method = request.method,
                                             .target = target,
                                             .headers = request.headers,
                                             .signed_headers = signed_headers,
                                             .body = request.body},
                                            auth.date, of, protocol::signing_key(secret->second, of));
  if (!equal_in_constant_time(expected, auth.signature))
    return refuse(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details.");
  return {};
}

}  // namespace tabella::wire

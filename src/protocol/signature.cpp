#include "protocol/signature.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/text.h"
#include "net/http.h"

namespace tabella::protocol {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

void append_encoded(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<uint8_t>(c);
  out.push_back('%');
  out.push_back(kDigits[byte >> 4]);
  out.push_back(kDigits[byte & 15]);
}

// Without "." and "..", and then encoded once more, as every service but S3 has it.
std::string canonical_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string out;
  for (const auto part : parts) {
    out.push_back('/');
    for (const char c : part) {
      if (is_unreserved(c))
        out.push_back(c);
      else
        append_encoded(out, c);
    }
  }
  if (out.empty() || path.ends_with('/')) out.push_back('/');
  return out;
}

// What is encoded already stays as it is.
std::string encode_query_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || c == '%')
      out.push_back(c);
    else
      append_encoded(out, c);
  }
  return out;
}

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto part : split(query, '&')) {
    if (part.empty()) continue;
    const auto equals = std::min(part.find('='), part.size());
    pairs.emplace_back(encode_query_part(part.substr(0, equals)),
                       encode_query_part(part.substr(std::min(equals + 1, part.size()))));
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out.push_back('&');
    out.append(name).append("=").append(value);
  }
  return out;
}

void append_canonical_value(std::string& out, const SignedRequest& request, std::string_view name) {
  bool first = true;
  for (const auto& [n, value] : request.headers) {
    if (!net::same_header(n, name)) continue;
    if (!first) out.push_back(',');
    first = false;
    bool blank = false;
    for (const char c : trim(value)) {
      if (c == ' ' && blank) continue;
      blank = c == ' ';
      out.push_back(c);
    }
  }
}

}  // namespace

std::string basic_date(std::time_t time) {
  std::tm tm{};
  gmtime_r(&time, &tm);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &tm)};
}

std::optional<std::time_t> parse_basic_date(std::string_view text) {
  std::tm tm{};
  const std::string copy(text);
  const char* end = strptime(copy.c_str(), "%Y%m%dT%H%M%SZ", &tm);
  if (!end || *end != '\0') return std::nullopt;
  return timegm(&tm);
}

std::string canonical_request(const SignedRequest& request) {
  const auto question = std::min(request.target.find('?'), request.target.size());
  std::string out;
  out.reserve(512);
  out.append(request.method).append("\n");
  const auto path = request.target.substr(0, question);
  out.append(path == "/" ? "/" : canonical_path(path)).append("\n");
  if (question < request.target.size()) out.append(canonical_query(request.target.substr(question + 1)));
  out.append("\n");
  for (auto rest = request.signed_headers; !rest.empty();) {
    const auto name = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    out.append(name).append(":");
    append_canonical_value(out, request, name);
    out.append("\n");
  }
  out.append("\n").append(request.signed_headers).append("\n").append(to_hex(sha256(request.body)));
  return out;
}

std::string signing_key(std::string_view secret, const SignatureScope& scope) {
  auto key = fmt::format("AWS4{}", secret);
  for (const auto part : {scope.date, scope.region, scope.service, std::string_view("aws4_request")})
    key = hmac_sha256(key, part);
  return key;
}

std::string signature(const SignedRequest& request, std::string_view time, const SignatureScope& scope,
                      std::string_view signing_key) {
  std::string to_sign;
  to_sign.reserve(256);
  to_sign.append(kSignatureAlgorithm).append("\n").append(time).append("\n");
  to_sign.append(scope.date).append("/").append(scope.region).append("/").append(scope.service);
  to_sign.append("/aws4_request\n").append(to_hex(sha256(canonical_request(request))));
  return to_hex(hmac_sha256(signing_key, to_sign));
}

}  // namespace tabella::protocol

#include "inbox/user_tokens.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/json.h"
#include "base/public_key.h"
#include "base/text.h"

namespace tabella::inbox {
namespace {

using std::chrono::seconds;

constexpr size_t kMostTokenBytes = 8 * 1024;
constexpr const char* kNotSigned = "the token is not signed by this tenant";

bool is_signed(std::string_view algorithm, std::string_view bytes, std::string_view signature,
               const TokenKeys& keys) {
  if (algorithm == "HS256")
    return !keys.secret.empty() && equal_in_constant_time(hmac_sha256(keys.secret, bytes), signature);
  const bool rsa = algorithm == "RS256";
  if (!rsa && algorithm != "EdDSA") return false;
  const auto kind = rsa ? SignatureKind::rsa_sha256 : SignatureKind::ed25519;
  return std::ranges::any_of(keys.public_keys,
                             [&](const auto& key) { return verify_signature(key, kind, bytes, signature); });
}

std::optional<TimePoint> time_claim(JsonValue claims, std::string_view name) {
  const auto value = claims.find(name);
  if (!value || !value->is_number()) return {};
  return time_at(std::clamp<int64_t>(value->integer(), 0, int64_t{1} << 40) * 1000);
}

}  // namespace

std::string user_hmac(std::string_view secret, std::string_view user) {
  // Nothing that is signed as a token begins like this: no user's name can make one of the other.
  return to_hex(hmac_sha256(secret, fmt::format("user:{}", user)));
}

std::string make_user_token(std::string_view secret, const NewToken& token, TimePoint now) {
  const auto issued = epoch_milliseconds(now) / 1000;
  std::string claims;
  {
    JsonObjectWriter object(claims);
    object.string("sub", token.user);
    object.string("tenant", token.place.tenant);
    if (!token.place.inbox.empty()) object.string("inbox", token.place.inbox);
    object.number("iat", issued);
    if (token.first_issued) object.number("auth_time", epoch_milliseconds(*token.first_issued) / 1000);
    object.number("exp", issued + token.lifetime.count());
  }
  const auto signed_part = to_base64url(R"({"alg":"HS256","typ":"JWT"})") + "." + to_base64url(claims);
  return signed_part + "." + to_base64url(hmac_sha256(secret, signed_part));
}

std::expected<UserToken, std::string> read_user_token(std::string_view token, const TokenKeys& keys,
                                                      const Place& place, TimePoint now) {
  const auto parts = split(token, '.');
  if (token.size() > kMostTokenBytes || parts.size() != 3)
    return std::unexpected("the token is no JSON Web Token");
  const auto header = from_base64url(parts[0]);
  const auto payload = from_base64url(parts[1]);
  const auto signature = from_base64url(parts[2]);
  if (!header || !payload || !signature) return std::unexpected("the token is no JSON Web Token");
  JsonDocument header_document;
  const auto head = header_document.parse(*header);
  if (!head || !head->is_object()) return std::unexpected("the token is no JSON Web Token");
  const auto signed_part = token.substr(0, parts[0].size() + 1 + parts[1].size());
  if (!is_signed(head->text("alg"), signed_part, *signature, keys)) return std::unexpected(kNotSigned);
  JsonDocument document;
  const auto claims = document.parse(*payload);
  if (!claims || !claims->is_object()) return std::unexpected("the token's claims are no JSON object");
  const auto expires = time_claim(*claims, "exp");
  if (!expires) return std::unexpected("the token has no exp: it must end");
  if (*expires <= now) return std::unexpected("the token has expired");
  if (const auto from = time_claim(*claims, "nbf"); from && *from > now)
    return std::unexpected("the token is not valid yet");
  const auto user = claims->text("sub");
  if (const auto problem = problem_with_name("sub", user); !problem.empty()) return std::unexpected(problem);
  for (const auto* name : {"tenant", "inbox"})
    if (claims->find(name) && claims->text(name).empty())
      return std::unexpected(fmt::format("the token's {} is no name", name));
  if (claims->find("tenant") && claims->text("tenant") != place.tenant)
    return std::unexpected("the token is for another tenant");
  if (claims->find("inbox") && !place.inbox.empty() && claims->text("inbox") != place.inbox)
    return std::unexpected("the token is for another inbox");
  UserToken read{.user = std::string(user), .inbox = std::string(claims->text("inbox")), .expires = *expires};
  read.issued = time_claim(*claims, "iat");
  const auto first = time_claim(*claims, "auth_time");
  read.first_issued = first ? first : read.issued;
  return read;
}

}  // namespace tabella::inbox

// How a user's page shows whose inbox it may read: a JSON Web Token (RFC 7519), signed with the tenant's
// secret (HS256) or by a key of the tenant's own (RS256, EdDSA); or an HMAC of the user's id, which never
// ends.
//
// Claims: sub, the user; exp, seconds since 1970, without which a token is none; tenant and inbox, which
// limit it where they are there; iat, without which it is not renewed; auth_time, of a renewal, when the
// first was issued.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "inbox/names.h"

namespace tabella::inbox {

// What tokens of a tenant are checked with.
struct TokenKeys {
  std::string secret;                    // empty: none
  std::vector<std::string> public_keys;  // PEM
};

struct UserToken {
  std::string user;
  std::string inbox;  // that it is for; empty: all of the tenant's
  TimePoint expires;
  std::optional<TimePoint> issued;
  // When the first was issued of which it is a renewal; otherwise when it was.
  std::optional<TimePoint> first_issued;
};

struct NewToken {
  Place place;
  std::string user;
  std::chrono::seconds lifetime;
  std::optional<TimePoint> first_issued = {};  // of a renewal
};

std::string make_user_token(std::string_view secret, const NewToken& token, TimePoint now);
// The error is a sentence. An inbox that is empty is any.
std::expected<UserToken, std::string> read_user_token(std::string_view token, const TokenKeys& keys,
                                                      const Place& place, TimePoint now);
// In hexadecimal digits.
std::string user_hmac(std::string_view secret, std::string_view user);

}  // namespace tabella::inbox

// Standard base64 (RFC 4648, with padding), as binaries travel in DynamoDB's JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tabella {

void append_base64(std::string& out, std::string_view bytes);
std::string to_base64(std::string_view bytes);

// nullopt unless `text` is padded, canonical base64.
std::optional<std::string> from_base64(std::string_view text);

// base64url (RFC 4648) without padding, as tokens and links have it.
std::string to_base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace tabella

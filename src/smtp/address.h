// Addresses as they stand in MAIL and RCPT, and what may stand behind them.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::smtp {

// <@relay,@relay:mailbox@domain> and its ESMTP parameters.
struct PathArgument {
  std::string address;  // without brackets, and without relays, which nobody uses any more; empty: <>
  std::map<std::string, std::string> parameters;  // names in capitals; values may be empty
};

// What follows "FROM:" or "TO:". A sentence if it cannot be read.
std::expected<PathArgument, std::string> parse_path(std::string_view text);

// mailbox@domain without blanks or control characters, the domain possibly an [address], at most 320 bytes.
// UTF-8 is for the caller to allow. A mailbox alone (postmaster) is one too.
bool is_address(std::string_view text);

bool is_ascii(std::string_view text);

}  // namespace tabella::smtp

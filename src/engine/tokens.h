// The idempotency tokens of transactions: what was done under a token is not done again for ten minutes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/write_context.h"

namespace tabella::engine {

// What was done under a token, and what it would have cost to read it: AWS answers a repetition with that.
struct TokenRecord {
  std::string fingerprint;                                 // stands for all that the request asked for
  std::vector<std::pair<std::string, double>> read_units;  // by table
};

std::optional<TokenRecord> find_token(const WriteContext& context, const std::string& token);
void remember_token(WriteContext& context, const std::string& token, const TokenRecord& record);

// Removes up to `most` tokens whose time is over, from `position` on (empty: the beginning), which it moves:
// what was removed before is not looked at again. Whether there may be more.
bool forget_tokens(WriteContext& context, std::string& position, size_t most);

}  // namespace tabella::engine

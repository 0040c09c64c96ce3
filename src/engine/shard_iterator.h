// Where a reader stands in a shard, as the text that it carries from call to call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/error.h"

namespace tabella::engine {

struct ShardIterator {
  std::string arn;
  uint64_t shard = 0;     // Shard::first
  uint64_t position = 0;  // the records after this sequence number come next
  TimePoint issued;
};

std::string encode_iterator(const ShardIterator& iterator);
store::Result<ShardIterator> decode_iterator(std::string_view text);

}  // namespace tabella::engine

// A stream as the engine works with it: its shards and what its records show.
//
// A shard holds the records of the items whose partition hashes begin with certain bits. It is closed after
// four hours, or when it has taken so many records that the stream should be read by more than one; the
// shards that follow it name it as their parent. A small stream has one shard, a busy one up to eight.
//
// Schemas are immutable once published, as tables' are. Only the tails live: shared by all versions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/waiters.h"
#include "store/streams.h"

namespace tabella::engine {

struct ShardTail {
  std::atomic<uint64_t> last{0};  // the last record that is committed
  uint64_t records = 0;           // taken since the store was opened; the writer's thread only
  Waiters waiters;
};

struct Shard {
  uint64_t first = 0;   // the sequence number before all its records, which is also its id,
  uint64_t last = 0;    // and the one after them, once it is closed
  std::string parent;   // its name; empty: none
  int bits = 0;         // how many of the hash's first bits the shard's items share,
  uint64_t prefix = 0;  // and which
  TimePoint opened;
  std::optional<TimePoint> closed;
  std::shared_ptr<ShardTail> tail = std::make_shared<ShardTail>();

  bool covers(uint64_t hash) const { return bits == 0 || hash >> (64 - bits) == prefix; }
  std::string name() const;
};

struct StreamSchema {
  uint32_t id = 0;
  std::string table;
  std::string table_arn;
  std::string label;
  store::StreamView view = store::StreamView::keys_only;
  bool enabled = true;
  TimePoint created;
  std::vector<store::KeyElement> key_schema;
  std::vector<Shard> shards;  // oldest first

  std::string arn() const;
  const Shard* shard(std::string_view name) const;
  Shard* open_shard(uint64_t hash);
  const Shard* open_shard(uint64_t hash) const;
};

using StreamPtr = std::shared_ptr<const StreamSchema>;

inline constexpr std::chrono::hours kStreamRetention{24};
// A store that was closed for longer than that still has what its readers had not come to: for records from
// before it was opened they have so much time after that.
inline constexpr std::chrono::minutes kStreamGrace{15};

// A sequence number as clients see it: 21 digits, so that their order as text is that as numbers.
std::string sequence_text(uint64_t sequence);
std::optional<uint64_t> sequence_from(std::string_view text);

// "2026-01-31T12:34:56.789", what tells a table's streams apart.
std::string stream_label(TimePoint at);

std::string encode_stream(const StreamSchema& stream);
StreamSchema decode_stream(std::string_view bytes);

}  // namespace tabella::engine

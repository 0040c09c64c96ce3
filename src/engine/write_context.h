#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "engine/catalogue.h"
#include "engine/database.h"
#include "engine/item_cache.h"
#include "engine/streams.h"

namespace tabella::engine {

// What the engine is made of, as the writer sees it.
struct Stored {
  Database& database;
  ItemCache& items;
  Catalogue& catalogue;
  Streams& streams;
  const Clock& clock;
};

// What a change sees and may do. Filled on the writer's thread; once its group is handed to the committer,
// which fills the batch from it, what later groups see of it does not change any more.
//
// A change reads and decides first and writes last: once it has written, it cannot be taken back.
class WriteContext {
 public:
  // `before` is the group whose commit is still under way, if there is one: its changes come before this
  // one's.
  WriteContext(const Stored& stored, std::shared_ptr<const WriteContext> before)
      : stored_(stored), before_(std::move(before)), now_(stored.clock.now()) {}

  // When the group began.
  TimePoint now() const { return now_; }

  // Items (and tokens), with the writes of this group.
  std::optional<std::string> get(const std::string& key) const;
  void put(const std::string& key, std::string_view value);
  void remove(const std::string& key);

  // All items whose keys begin so, those written in this group included.
  void remove_items(const std::string& prefix);

  // Anything that no change of the same group reads back: index entries and the like.
  Batch& batch() { return batch_; }
  const Database& database() const { return stored_.database; }

  SchemaPtr table(std::string_view name) const;
  void put_table(SchemaPtr table);
  void drop_table(const TableSchema& table);

  StreamPtr stream(uint32_t id) const;
  void put_stream(StreamPtr stream);
  void drop_stream(uint32_t id);
  uint64_t take_sequence();
  TimePoint take_label_time() { return stored_.streams.take_label_time(now_); }
  // Adds a record to the end of a shard.
  void append_record(uint32_t stream_id, const Shard& shard, std::string_view record);

  // Tells those who wait at its end that there will be no more.
  void end_shard(const Shard& shard) { tails_.insert_or_assign(shard.tail, shard.last); }

  // The sweep for expired items must not pass this entry before it is committed.
  void note_expiry(uint32_t expiry_id, const std::string& key);
  // The earliest such entry of this group and of the one whose commit is under way.
  const std::string* uncommitted_expiry(uint32_t expiry_id) const;

  // What was counted in this group for an index that goes.
  void forget_count(uint32_t id) { deltas_.erase(id); }
  void count(uint32_t id, const std::shared_ptr<Counters>& counters, int64_t items, int64_t bytes);

  // Whether there is anything to commit.
  bool empty() const { return batch_.empty() && written_.empty() && deltas_.empty(); }

 private:
  friend class Writer;
  // Only the last value of each item goes to disk, in the order of the keys: a counter that a whole group
  // incremented is one entry, and neighbours are found from each other.
  void fill_batch();

  struct Delta {
    std::shared_ptr<Counters> counters;
    int64_t items = 0;
    int64_t bytes = 0;
  };

  const Stored& stored_;
  std::shared_ptr<const WriteContext> before_;
  const TimePoint now_;
  Batch batch_;
  ItemCache::Written written_;
  std::unordered_map<uint32_t, Delta> deltas_;
  std::map<std::string, SchemaPtr, std::less<>> tables_;  // changed in this group; null: dropped
  std::unordered_map<uint32_t, StreamPtr> streams_;       // likewise
  std::unordered_map<std::shared_ptr<ShardTail>, uint64_t> tails_;
  std::unordered_map<uint32_t, std::string> expiries_;
  uint64_t sequence_ = 0;  // the last one taken; 0: none
};

}  // namespace tabella::engine

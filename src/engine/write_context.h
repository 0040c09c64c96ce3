#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/catalogue.h"
#include "engine/database.h"
#include "engine/item_cache.h"
#include "engine/reclaim.h"
#include "engine/streams.h"

namespace tabella::engine {

// What the engine is made of, as the writer sees it.
struct Stored {
  Database& database;
  ItemCache& items;
  Catalogue& catalogue;
  Streams& streams;
  const Clock& clock;
  Reclaim* reclaim = nullptr;  // if deleted room is to be given back
};

// What a change sees and may do. Filled on the writer's thread; once its group is handed to the committer,
// which fills the batch from it, what later groups see of it does not change any more.
//
// A change that fails on the way is taken back: undo() leaves what was there at the last mark().
class WriteContext {
 public:
  // `before` is the group whose commit is still under way, if there is one: its changes come before this
  // one's.
  WriteContext(const Stored& stored, std::shared_ptr<const WriteContext> before)
      : stored_(stored), before_(std::move(before)), now_(stored.clock.now()) {}

  void mark();
  void undo();
  // For what a change moves on outside: undo() puts back what it is now. It must be there until the next
  // mark.
  void restore_on_undo(std::string& position) {
    undo_.emplace_back([&position, before = position]() mutable { position = std::move(before); });
  }

  // When the group began.
  TimePoint now() const { return now_; }

  // Items (and tokens), with the writes of this group.
  std::optional<std::string> get(const std::string& key) const;
  size_t size_of(const std::string& key) const;  // 0: there is none
  void put(const std::string& key, std::string_view value);
  void remove(const std::string& key);

  // All items of a table, those written in this group included.
  void remove_items(const TableSchema& table);

  // Tells that the room of everything with this prefix, about so many bytes, can be given back.
  void note_dropped(std::string prefix, uint64_t bytes) { dropped_.emplace_back(std::move(prefix), bytes); }

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
  void end_shard(const Shard& shard) { set(tails_, shard.tail, shard.last); }

  // The sweep for expired items must not pass this entry before it is committed.
  void note_expiry(uint32_t expiry_id, const std::string& key);
  // The earliest such entry of this group and of the one whose commit is under way.
  const std::string* uncommitted_expiry(uint32_t expiry_id) const;

  // What was counted in this group for an index that goes.
  void forget_count(uint32_t id);
  void count(const TableSchema& table, int64_t items, int64_t bytes);
  void count(const IndexSchema& index, int64_t items, int64_t bytes);

  // What there is to commit, about.
  size_t bytes() const { return batch_.bytes() + written_bytes_; }
  // Whether there is anything to commit.
  bool empty() const { return batch_.empty() && written_.empty() && deltas_.empty(); }

 private:
  friend class Writer;
  // Only the last value of each item goes to disk, in the order of the keys: a counter that a whole group
  // incremented is one entry, and neighbours are found from each other.
  void fill_batch();

  // Puts a value into one of the maps below, or takes it out, so that undo() can put back what was there.
  template <class Map>
  void set(Map& map, const typename Map::key_type& key, typename Map::mapped_type value);
  template <class Map>
  void unset(Map& map, const typename Map::key_type& key);

  void count(uint32_t id, const std::shared_ptr<Counters>& counters, bool index, int64_t items,
             int64_t bytes);

  struct Delta {
    std::shared_ptr<Counters> counters;
    bool index = false;  // of an index, not of a table
    int64_t items = 0;
    int64_t bytes = 0;
  };

  const Stored& stored_;
  std::shared_ptr<const WriteContext> before_;
  const TimePoint now_;
  Batch batch_;
  ItemCache::Written written_;
  size_t written_bytes_ = 0;
  std::unordered_map<uint32_t, Delta> deltas_;
  std::map<std::string, SchemaPtr, std::less<>> tables_;  // changed in this group; null: dropped
  std::unordered_map<uint32_t, StreamPtr> streams_;       // likewise
  std::unordered_map<std::shared_ptr<ShardTail>, uint64_t> tails_;
  std::unordered_map<uint32_t, std::string> expiries_;
  std::vector<std::pair<std::string, uint64_t>> dropped_;
  uint64_t sequence_ = 0;                              // the last one taken; 0: none
  std::vector<std::move_only_function<void()>> undo_;  // what was done since the mark, backwards
  bool marked_ = false;
};

template <class Map>
void WriteContext::set(Map& map, const typename Map::key_type& key, typename Map::mapped_type value) {
  const auto [at, fresh] = map.try_emplace(key);
  // Where an entry stands in a map does not change while it is there.
  if (fresh)
    undo_.emplace_back([&map, k = &at->first] { map.erase(map.find(*k)); });
  else
    undo_.emplace_back(
        [v = &at->second, before = std::move(at->second)]() mutable { *v = std::move(before); });
  at->second = std::move(value);
}

template <class Map>
void WriteContext::unset(Map& map, const typename Map::key_type& key) {
  auto node = map.extract(key);
  if (!node.empty()) undo_.emplace_back([&map, n = std::move(node)]() mutable { map.insert(std::move(n)); });
}

}  // namespace tabella::engine

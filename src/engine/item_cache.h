// Items read or written of late, in front of the database: a read that hits costs a hash lookup instead of a
// search through memtables and files.
//
// Thread-safe, and never stale: the writer announces the keys of a commit before it and gives their new
// values after it. In between those keys are not in the cache, and what a reader found in the database
// meanwhile is not taken in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "engine/database.h"

namespace tabella::engine {

class ItemCache {
 public:
  // What a commit leaves under each key; nothing where the item is deleted.
  using Written = std::unordered_map<std::string, std::optional<std::string>, KeyedHash>;

  ItemCache(const Database& database, size_t bytes) : database_(database), shard_bytes_(bytes / kShards) {}

  std::optional<std::string> get(const std::string& key);
  // Without a copy, where it is cached; 0: there is none.
  size_t size_of(const std::string& key);

  // Around a commit, by the writer.
  void before_commit(const Written& written);
  void after_commit(const Written& written);
  // Forgets all. No commit may be under way.
  void clear();
  // Where the commit failed: nothing is known of these keys.
  void after_failure(const Written& written);

 private:
  static constexpr size_t kShards = 64;

  using Entries = std::unordered_map<std::string, std::string, KeyedHash>;

  // Two generations stand in for an order of use: what is used moves to the young one, and when that is full
  // the old one goes.
  struct Shard {
    std::mutex mutex;
    uint64_t commits = 0;  // keys committed so far
    size_t in_commit = 0;  // keys being committed now
    Entries young;
    Entries old;
    size_t young_bytes = 0;

    const std::string* find(const std::string& key);
    void put(const std::string& key, std::string value, size_t limit);
    void remove(const std::string& key);
  };

  Shard& shard_of(const std::string& key) { return shards_[keyed_hash(key) >> 58]; }

  const Database& database_;
  const size_t shard_bytes_;
  std::array<Shard, kShards> shards_;
};

}  // namespace tabella::engine

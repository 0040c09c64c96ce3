#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/catalogue.h"
#include "engine/database.h"
#include "engine/item_cache.h"

namespace tabella::engine {

// What a change sees and may do. Filled on the writer's thread; once its group is handed to the committer it
// does not change any more.
//
// A change reads and decides first and writes last: once it has written, it cannot be taken back.
class WriteContext {
 public:
  // `before` is the group whose commit is still under way, if there is one: its changes come before this
  // one's.
  WriteContext(const Database& database, ItemCache& items, const Catalogue& catalogue,
               std::shared_ptr<const WriteContext> before)
      : database_(database), items_(items), catalogue_(catalogue), before_(std::move(before)) {}

  // Items, with the writes of this group.
  std::optional<std::string> get(const std::string& key) const;
  void put(const std::string& key, std::string_view value);
  void remove(const std::string& key);

  // All items whose keys begin so, those written in this group included.
  void remove_items(const std::string& prefix);

  // Anything that no change of the same group reads back: index entries and the like.
  Batch& batch() { return batch_; }
  const Database& database() const { return database_; }

  SchemaPtr table(std::string_view name) const;
  void put_table(SchemaPtr table);
  void drop_table(const TableSchema& table);

  void count(uint32_t id, const std::shared_ptr<Counters>& counters, int64_t items, int64_t bytes);

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

  const Database& database_;
  ItemCache& items_;
  const Catalogue& catalogue_;
  std::shared_ptr<const WriteContext> before_;
  Batch batch_;
  ItemCache::Written written_;
  std::unordered_map<uint32_t, Delta> deltas_;
  std::map<std::string, SchemaPtr, std::less<>> tables_;  // changed in this group; null: dropped
};

}  // namespace tabella::engine

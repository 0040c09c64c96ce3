// The one writer. Every change to the store is a function that it runs on its own thread, one after the
// other: so there are no locks, each change sees those before it, and a counter that everyone increments is
// no problem.
//
// It drains its queue into a group, runs the group's changes against one batch, commits the batch with one
// sync, and only then lets the callers go on. While a sync runs, the next group gathers.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/catalogue.h"
#include "engine/database.h"
#include "engine/item_cache.h"

namespace tabella::engine {

// What a change sees and may do. Lives as long as its group; used on the writer's thread only.
//
// A change reads and decides first and writes last: once it has written, it cannot be taken back.
class WriteContext {
 public:
  WriteContext(const Database& database, ItemCache& items, const Catalogue& catalogue)
      : database_(database), items_(items), catalogue_(catalogue) {}

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
  Batch batch_;
  ItemCache::Written written_;
  std::unordered_map<uint32_t, Delta> deltas_;
  std::map<std::string, SchemaPtr, std::less<>> tables_;  // changed in this group; null: dropped
};

class Writer {
 public:
  using Change = std::move_only_function<void(WriteContext&)>;
  // Work in slices, run between groups so that it never holds them up for long. True when it is done.
  using Background = std::move_only_function<bool(WriteContext&)>;

  Writer(Database& database, ItemCache& items, Catalogue& catalogue);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Runs `change` and returns once it is durable; resumes on the caller's executor. What `change` refers to
  // may live in the caller's frame. Throws what it threw, or DatabaseFailure if the commit failed.
  boost::asio::awaitable<void> execute(Change change);

  void run_in_background(Background work);

  // Finishes what is queued and stops. Background work is left where it is.
  void stop();

 private:
  struct Job;

  void enqueue(Job* job);
  void run();
  std::vector<Job*> next_group(bool background_waits);
  void run_group(const std::vector<Job*>& group);
  bool run_background(WriteContext& context);
  std::exception_ptr commit(WriteContext& context);
  void publish(WriteContext& context);
  void flush_when_idle(std::unique_lock<std::mutex>& lock);

  Database& database_;
  ItemCache& items_;
  Catalogue& catalogue_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> queue_;                 // guarded by mutex_
  std::vector<Background> new_background_;  // guarded by mutex_
  bool stopping_ = false;                   // guarded by mutex_

  std::vector<Background> background_;  // the writer's thread only
  size_t unflushed_ = 0;                // bytes written since the last flush; the writer's thread only
  std::thread thread_;
};

}  // namespace tabella::engine

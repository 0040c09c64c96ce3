// Gives the disk back what was deleted. RocksDB does so when it next rewrites a file, which for a store at
// rest is never; so where much went, this rewrites what is left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "engine/database.h"

namespace tabella::engine {

class Reclaim {
 public:
  explicit Reclaim(Database& database);
  ~Reclaim() { stop(); }
  Reclaim(const Reclaim&) = delete;
  Reclaim& operator=(const Reclaim&) = delete;

  // So much of what begins with `prefix` was deleted, of so much that there was; once it is worth it, the
  // room is given back. Thread-safe.
  void deleted(const std::string& prefix, uint64_t bytes, uint64_t of);

  void write_metrics(metrics::Exposition& out) const;
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Deleted {
    uint64_t bytes = 0;
    uint64_t of = 0;
    Clock::time_point last;
    Clock::time_point first;
  };

  void run();
  bool is_worth_it(const Deleted& deleted, Clock::time_point now) const;

  Database& database_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Deleted> deleted_;  // guarded by mutex_; by prefix
  metrics::Counter runs_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace tabella::engine

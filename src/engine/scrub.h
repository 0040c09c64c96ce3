// Reads all data files once after a start, slowly, and compares them with their checksums: damage is found
// while there may still be a copy, and not when the item is wanted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "engine/database.h"

namespace tabella::engine {

class Scrub {
 public:
  // Begins at once, on a thread of its own.
  Scrub(const Database& database, std::filesystem::path folder);
  ~Scrub() { stop(); }
  Scrub(const Scrub&) = delete;
  Scrub& operator=(const Scrub&) = delete;

  // What was found to be wrong, as a sentence; empty: nothing.
  std::string damage() const;
  void write_metrics(metrics::Exposition& out) const;
  void stop();

 private:
  void run();
  bool pause(std::chrono::milliseconds time);

  const Database& database_;
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string damage_;     // guarded by mutex_
  bool stopping_ = false;  // guarded by mutex_
  metrics::Counter bytes_ = 0;
  metrics::Counter damaged_files_ = 0;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace tabella::engine

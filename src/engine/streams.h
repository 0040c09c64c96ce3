// Which streams there are, those of dropped tables included: their records can be read for a day.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/stream.h"

namespace tabella::engine {

// Thread-safe, but for the sequence.
class Streams {
 public:
  StreamPtr find(uint32_t id) const;
  StreamPtr find(std::string_view arn) const;
  void put(StreamPtr stream);
  void drop(uint32_t id);
  void replace(const std::vector<StreamPtr>& all);  // whatever there was
  std::vector<StreamPtr> all() const;               // by ARN

  // One sequence for all streams. The writer's thread only, once the store is open.
  uint64_t take_sequence() { return ++sequence_; }
  void set_sequence(uint64_t last) { sequence_ = last; }
  // The time that a new stream is labelled with: no two have the same, whatever the clock does. Likewise.
  TimePoint take_label_time(TimePoint now) {
    return last_label_ = std::max(now, last_label_ + std::chrono::milliseconds{1});
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StreamPtr, std::less<>> by_arn_;  // guarded by mutex_
  std::unordered_map<uint32_t, StreamPtr> by_id_;         // guarded by mutex_
  uint64_t sequence_ = 0;
  TimePoint last_label_;
};

}  // namespace tabella::engine

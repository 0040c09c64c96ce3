// How many calls of one receiver may be under way: one that is slow, or does not answer at all, keeps neither
// the timers nor the other receivers waiting.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tabella::webhook {

// Thread-safe. Must outlive its places.
class Places {
 public:
  explicit Places(int most) : most_(most) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Given back when it is let go. Nothing: the receiver has enough of them.
  std::shared_ptr<void> take(const std::string& receiver) {
    const std::lock_guard lock(mutex_);
    auto& count = under_way_[receiver];
    if (count >= most_) return nullptr;
    ++count;
    return {this, [receiver](Places* places) { places->give_back(receiver); }};
  }

 private:
  void give_back(const std::string& receiver) {
    const std::lock_guard lock(mutex_);
    if (--under_way_[receiver] == 0) under_way_.erase(receiver);
  }

  const int most_;
  std::mutex mutex_;
  std::map<std::string, int> under_way_;  // guarded by mutex_
};

}  // namespace tabella::webhook

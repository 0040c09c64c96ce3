// What the store said of a key, remembered for a moment; that there is nothing is remembered as well. So
// whatever changes takes effect everywhere within kRemembered, and the same credentials over and over, right
// or wrong, cost the store next to nothing. Bounded. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"

namespace tabella::access {

inline constexpr std::chrono::seconds kRemembered{2};

template <class Answer>
class Recent {
 public:
  explicit Recent(const Clock& clock) : clock_(clock) {}

  std::optional<Answer> find(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || is_old(found->second)) return std::nullopt;
    return found->second.answer;
  }
  // `asked` is when the store was asked.
  void keep(std::string key, Answer answer, Elapsed asked) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= kMost) std::erase_if(entries_, [this](const auto& e) { return is_old(e.second); });
    if (entries_.size() >= kMost) entries_.clear();
    entries_.insert_or_assign(std::move(key), Entry{std::move(answer), asked});
  }
  // Changes an answer that is remembered, for as long as it is.
  template <class Change>
  void change(std::string_view key, Change change) {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) change(found->second.answer);
  }
  void forget(std::string_view key) {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) entries_.erase(found);
  }

 private:
  static constexpr size_t kMost = 4096;
  struct Entry {
    Answer answer;
    Elapsed asked;
  };
  bool is_old(const Entry& entry) const { return clock_.elapsed() - entry.asked >= kRemembered; }

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry, KeyedHash, std::equal_to<>> entries_;  // guarded by mutex_
};

}  // namespace tabella::access

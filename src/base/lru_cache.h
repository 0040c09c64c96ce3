// Values by name, as many as fit into so many bytes: those that were asked for last.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tabella {

// Thread-safe.
template <class Value>
class LruCache {
 public:
  explicit LruCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Null: there is none.
  std::shared_ptr<const Value> find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->value;
  }

  // Instead of one that is there. `bytes` are those of the value.
  void keep(std::string key, std::shared_ptr<const Value> value, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto before = by_key_.find(key); before != by_key_.end()) forget(before->second);
    bytes += key.size() + kBookkeeping;
    kept_.push_front({.key = std::move(key), .value = std::move(value), .bytes = bytes});
    by_key_.emplace(kept_.front().key, kept_.begin());
    bytes_ += bytes;
    while (bytes_ > most_bytes_) forget(std::prev(kept_.end()));
  }

 private:
  static constexpr size_t kBookkeeping = 200;
  struct Kept {
    std::string key;
    std::shared_ptr<const Value> value;
    size_t bytes;
  };

  void forget(typename std::list<Kept>::iterator kept) {
    bytes_ -= kept->bytes;
    by_key_.erase(kept->key);
    kept_.erase(kept);
  }

  const size_t most_bytes_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Kept> kept_;  // what was asked for last comes first
  std::unordered_map<std::string_view, typename std::list<Kept>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace tabella

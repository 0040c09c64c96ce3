#include "engine/item_cache.h"

namespace tabella::engine {
namespace {

// Large items would push out many small ones, and copying them is what they cost anyway.
constexpr size_t kMaxCached = 16 * 1024;

size_t cost(const std::string& key, const std::string& value) {
  constexpr size_t kOverhead = 112;  // a node and two strings
  return key.size() + value.size() + kOverhead;
}

}  // namespace

const std::string* ItemCache::Shard::find(const std::string& key) {
  if (const auto at = young.find(key); at != young.end()) return &at->second;
  const auto at = old.find(key);
  if (at == old.end()) return nullptr;
  const auto moved = young.insert(old.extract(at)).position;
  young_bytes += cost(moved->first, moved->second);
  return &moved->second;
}

void ItemCache::Shard::put(const std::string& key, std::string value, size_t limit) {
  remove(key);
  if (value.size() > kMaxCached) return;
  if (young_bytes > limit / 2) {
    old = std::exchange(young, {});
    young_bytes = 0;
  }
  young_bytes += cost(key, value);
  young.emplace(key, std::move(value));
}

void ItemCache::Shard::remove(const std::string& key) {
  if (const auto at = young.find(key); at != young.end()) {
    young_bytes -= cost(at->first, at->second);
    young.erase(at);
  }
  old.erase(key);
}

std::optional<std::string> ItemCache::get(const std::string& key) {
  Shard& shard = shard_of(key);
  uint64_t commits = 0;
  {
    const std::lock_guard lock(shard.mutex);
    if (const auto* value = shard.find(key)) return *value;
    commits = shard.commits;
  }
  auto value = database_.get(key);
  if (!value) return value;
  const std::lock_guard lock(shard.mutex);
  if (shard.in_commit == 0 && shard.commits == commits) shard.put(key, *value, shard_bytes_);
  return value;
}

size_t ItemCache::size_of(const std::string& key) {
  Shard& shard = shard_of(key);
  {
    const std::lock_guard lock(shard.mutex);
    if (const auto* value = shard.find(key)) return value->size();
  }
  const auto value = get(key);
  return value ? value->size() : 0;
}

void ItemCache::before_commit(const Written& written) {
  for (const auto& [key, value] : written) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    ++shard.in_commit;
    shard.remove(key);
  }
}

void ItemCache::after_commit(const Written& written) {
  for (const auto& [key, value] : written) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    --shard.in_commit;
    ++shard.commits;
    if (value) shard.put(key, *value, shard_bytes_);
  }
}

void ItemCache::after_failure(const Written& written) {
  for (const auto& [key, value] : written) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    --shard.in_commit;
    ++shard.commits;
  }
}

void ItemCache::clear() {
  for (auto& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    ++shard.commits;  // what a reader is fetching now is not kept
    shard.young.clear();
    shard.old.clear();
    shard.young_bytes = 0;
  }
}

}  // namespace tabella::engine

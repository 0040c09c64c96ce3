#include "engine/keys.h"

#include <xxhash.h>

#include "base/bytes.h"

namespace tabella::engine::keys {
namespace {

constexpr char kItems = 'i';
constexpr char kIndex = 'x';
constexpr char kCatalogue = 'c';
constexpr char kCounters = 'n';
constexpr char kMeta = 'm';
constexpr char kRecords = 's';
constexpr char kStreams = 'd';
constexpr char kExpiry = 'e';
constexpr char kTokens = 't';
constexpr char kTokensByAge = 'a';

constexpr size_t kIdEnd = 5;  // keyspace and id

void append_partition(std::string& key, ValueView partition_key) {
  put_u16(key, static_cast<uint16_t>(partition_key.content().size()));
  key.append(partition_key.content());
}

std::string with_id(char keyspace, uint32_t id) {
  std::string key(1, keyspace);
  put_u32(key, id);
  return key;
}

}  // namespace

uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string item_partition(uint32_t table_id, ValueView partition_key) {
  std::string key;
  key.reserve(96);
  key.push_back(kItems);
  put_u32(key, table_id);
  put_u64(key, hash64(partition_key.content()));
  append_partition(key, partition_key);
  return key;
}

std::string index_partition(uint32_t index_id, std::span<const ValueView> partition_key) {
  std::string partition;
  for (const auto& part : partition_key) append_partition(partition, part);
  std::string key = with_id(kIndex, index_id);
  put_u64(key, hash64(partition));
  return key + partition;
}

void append_sort_prefix(std::string& key, ValueView prefix) {
  for (char c : prefix.content()) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xff');
  }
}

void append_sort(std::string& key, ValueView sort_key) {
  if (sort_key.type() == item::Type::N) {
    key.append(sort_key.content());
    return;
  }
  append_sort_prefix(key, sort_key);
  key.push_back('\0');
  key.push_back('\1');
}

void append_base_key(std::string& key, ValueView partition_key, const ValueView* sort_key) {
  append_partition(key, partition_key);
  if (sort_key) append_sort(key, *sort_key);
}

std::string items_of(uint32_t table_id) { return with_id(kItems, table_id); }
std::string entries_of(uint32_t index_id) { return with_id(kIndex, index_id); }

std::string at_hash(std::string prefix, uint64_t hash) {
  put_u64(prefix, hash);
  return prefix;
}

std::string record(uint32_t stream_id, uint64_t shard, uint64_t sequence) {
  std::string key = records_of(stream_id, shard);
  put_u64(key, sequence);
  return key;
}

std::string records_of(uint32_t stream_id, uint64_t shard) {
  std::string key = with_id(kRecords, stream_id);
  key.reserve(kPartitionPrefix + 8);
  put_u64(key, shard);
  return key;
}

uint64_t sequence_of(std::string_view record_key) { return get_u64(record_key.substr(kPartitionPrefix)); }

std::string expiry(uint32_t expiry_id, uint64_t due, std::string_view item_key) {
  return expiries_from(expiry_id, due).append(item_key.substr(kIdEnd));
}

std::string expiries_of(uint32_t expiry_id) { return with_id(kExpiry, expiry_id); }

std::string expiries_from(uint32_t expiry_id, uint64_t due) {
  std::string key = with_id(kExpiry, expiry_id);
  put_u64(key, due);
  return key;
}

uint64_t due_of(std::string_view expiry_key) { return get_u64(expiry_key.substr(kIdEnd)); }

std::string item_of_expiry(uint32_t table_id, std::string_view expiry_key) {
  return with_id(kItems, table_id).append(expiry_key.substr(kIdEnd + 8));
}

uint64_t hash_of(std::string_view item_key) { return get_u64(item_key.substr(kIdEnd)); }

std::string token(std::string_view token) { return std::string(1, kTokens).append(token); }
std::string tokens_by_age() { return std::string(1, kTokensByAge); }
std::string token_by_age(uint64_t due, std::string_view token) {
  std::string key = tokens_by_age();
  put_u64(key, due);
  return key.append(token);
}

std::string stream_entry(uint32_t stream_id) { return with_id(kStreams, stream_id); }
std::string stream_entries() { return std::string(1, kStreams); }

std::string catalogue_entry(std::string_view table_name) {
  return std::string(1, kCatalogue).append(table_name);
}
std::string counters(uint32_t id) { return with_id(kCounters, id); }
std::string meta(std::string_view name) { return std::string(1, kMeta).append(name); }

std::string end_of(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

}  // namespace tabella::engine::keys

// The keys of everything on disk (docs/storage_format.md, "Keys"; do not change). Big-endian throughout, so
// that byte order is the order we want.
//
//   items   'i' · table id (4) · hash64 of the partition key (8) · partition key · sort key
//   index   'x' · index id (4) · hash64 of the index partition (8) · index partition · index sort · base key
//   stream  's' · stream id (4) · shard (8) · sequence (8)
//   expiry  'e' · expiry id (4) · due second (8) · the item's key from its hash on
//   token   't' · operation (1) · idempotency token
//   tokens by age  'a' · due millisecond (8) · operation (1) · token
//   catalogue 'c' · table name          streams 'd' · stream id (4)
//   counters 'n' · table or index id (4)          meta 'm' · name
//
// A partition key is length-prefixed (2): among equal hashes its order means nothing. A sort key is
// order-preserving and self-delimiting: numbers as in item/number.h; strings and binaries with 00 escaped as
// 00 FF and ended by 00 01.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "item/value.h"

namespace tabella::engine::keys {

using item::ValueView;

// Keyspace, id and hash: what every key of one partition shares.
inline constexpr size_t kPartitionPrefix = 13;

uint64_t hash64(std::string_view bytes);

std::string item_partition(uint32_t table_id, ValueView partition_key);
std::string index_partition(uint32_t index_id, std::span<const ValueView> partition_key);
void append_sort(std::string& key, ValueView sort_key);
// The beginning of every sort key that starts with `prefix`.
void append_sort_prefix(std::string& key, ValueView prefix);
void append_base_key(std::string& key, ValueView partition_key, const ValueView* sort_key);

std::string items_of(uint32_t table_id);
std::string entries_of(uint32_t index_id);
// Where the given hash begins in a table or index: the border of a scan's segment.
std::string at_hash(std::string prefix, uint64_t hash);

std::string record(uint32_t stream_id, uint64_t shard, uint64_t sequence);
std::string records_of(uint32_t stream_id, uint64_t shard);
uint64_t sequence_of(std::string_view record_key);

// The entry for an item that is due; `item_key` is the item's.
std::string expiry(uint32_t expiry_id, uint64_t due, std::string_view item_key);
std::string expiries_of(uint32_t expiry_id);
std::string expiries_from(uint32_t expiry_id, uint64_t due);
uint64_t due_of(std::string_view expiry_key);
// The key of the item that an expiry entry stands for.
std::string item_of_expiry(uint32_t table_id, std::string_view expiry_key);
// The hash of the partition in the key of an item.
uint64_t hash_of(std::string_view item_key);

std::string token(std::string_view token);
std::string token_by_age(uint64_t due, std::string_view token);
std::string tokens_by_age();

std::string stream_entry(uint32_t stream_id);
std::string stream_entries();
std::string catalogue_entry(std::string_view table_name);
std::string counters(uint32_t id);
std::string meta(std::string_view name);

// The first key after all that begin with `prefix`.
std::string end_of(std::string prefix);

}  // namespace tabella::engine::keys

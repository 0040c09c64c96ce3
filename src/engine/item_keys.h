// The keys of items and index entries, and what is wrong with attributes that should be keys.
#pragma once

#include <optional>
#include <string>

#include "engine/schema.h"
#include "item/value.h"
#include "store/error.h"

namespace tabella::engine {

inline constexpr const char* kKeyMismatch = "The provided key element does not match the schema";

// The key of an item whose attributes have been checked.
std::string item_key(const TableSchema& table, item::ItemView item);

// Checks a Key parameter: exactly the key attributes, of the right types, not empty, not too long.
store::Result<> check_key(const TableSchema& table, item::ItemView key);

// Checks the key attributes of an item that is to be put, those of its indexes included.
store::Result<> check_item(const TableSchema& table, item::ItemView item);

// Checks only what stands in secondary indexes.
store::Result<> check_index_keys(const TableSchema& table, item::ItemView item);

// The key attributes alone: table's, and the index's if there is one.
item::Item key_of(const TableSchema& table, const IndexSchema* index, item::ItemView item);

struct IndexEntry {
  std::string key;
  item::Item item;
};

// What the index holds for this item; nothing if an index key is missing or cannot be one.
std::optional<IndexEntry> index_entry(const TableSchema& table, const IndexSchema& index,
                                      item::ItemView item);

// Checks one attribute as part of a key.
store::Result<> check_key_value(const KeyAttribute& key, item::ValueView value, store::KeyRole role);

}  // namespace tabella::engine

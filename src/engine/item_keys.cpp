#include "engine/item_keys.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/keys.h"

namespace tabella::engine {

using item::ItemView;
using item::Type;
using item::ValueView;
using store::KeyRole;
using store::refuse;
using store::Result;

namespace {

constexpr size_t kMaxPartitionKey = 2048;
constexpr size_t kMaxSortKey = 1024;

size_t max_size(KeyRole role) { return role == KeyRole::hash ? kMaxPartitionKey : kMaxSortKey; }

bool is_empty(ValueView value) { return value.type() != Type::N && value.content().empty(); }

Result<> check_size(ValueView value, KeyRole role) {
  if (value.type() == Type::N || value.content().size() <= max_size(role)) return {};
  if (role == KeyRole::hash)
    return refuse(
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit "
        "of2048 bytes");
  return refuse(
      "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size "
      "limit of "
      "1024 bytes");
}

std::string_view word_for_type(ValueView value) { return value.type() == Type::B ? "binary" : "string"; }

Result<> check_put_key(const KeyAttribute& key, ItemView item, KeyRole role) {
  const auto value = item.find(key.name);
  if (!value)
    return refuse(
        fmt::format("One or more parameter values were invalid: Missing the key {} in the item", key.name));
  if (value->type() != key.type)
    return refuse(fmt::format(
        "One or more parameter values were invalid: Type mismatch for key {} expected: {} actual: {}",
        key.name, item::type_name(key.type), item::type_name(value->type())));
  return check_key_value(key, *value, role);
}

Result<> check_index_key(const IndexSchema& index, const KeyAttribute& key, ItemView item, KeyRole role) {
  const auto value = item.find(key.name);
  if (!value) return {};
  if (value->type() != key.type)
    return refuse(fmt::format(
        "One or more parameter values were invalid: Type mismatch for Index Key {} Expected: {} Actual: {} "
        "IndexName: {}",
        key.name, item::type_name(key.type), item::type_name(value->type()), index.name()));
  if (is_empty(*value))
    return refuse(
        fmt::format("One or more parameter values are not valid. A value specified for a secondary index key "
                    "is not supported. "
                    "The AttributeValue for a key attribute cannot contain an empty {} value. IndexName: {}, "
                    "IndexKey: {}",
                    word_for_type(*value), index.name(), key.name));
  return check_size(*value, role);
}

// Whether the value can stand in this place of an index.
bool fits(const KeyAttribute& key, const std::optional<ValueView>& value, KeyRole role) {
  if (!value || value->type() != key.type || is_empty(*value)) return false;
  return value->type() == Type::N || value->content().size() <= max_size(role);
}

}  // namespace

Result<> check_key_value(const KeyAttribute& key, ValueView value, KeyRole role) {
  if (is_empty(value))
    return refuse(
        fmt::format("One or more parameter values are not valid. The AttributeValue for a key attribute "
                    "cannot contain an empty {} "
                    "value. Key: {}",
                    word_for_type(value), key.name));
  return check_size(value, role);
}

std::string item_key(const TableSchema& table, ItemView item) {
  std::string key = keys::item_partition(table.id, *item.find(table.partition.name));
  if (table.sort) keys::append_sort(key, *item.find(table.sort->name));
  return key;
}

Result<> check_key(const TableSchema& table, ItemView key) {
  if (key.count() != (table.sort ? 2u : 1u)) return refuse(kKeyMismatch);
  const auto check = [&](const KeyAttribute& attribute, KeyRole role) -> Result<> {
    const auto value = key.find(attribute.name);
    if (!value || value->type() != attribute.type) return refuse(kKeyMismatch);
    return check_key_value(attribute, *value, role);
  };
  TABELLA_TRY(check(table.partition, KeyRole::hash));
  if (table.sort) TABELLA_TRY(check(*table.sort, KeyRole::range));
  return {};
}

Result<> check_item(const TableSchema& table, ItemView item) {
  TABELLA_TRY(check_put_key(table.partition, item, KeyRole::hash));
  if (table.sort) TABELLA_TRY(check_put_key(*table.sort, item, KeyRole::range));
  return check_index_keys(table, item);
}

Result<> check_index_keys(const TableSchema& table, ItemView item) {
  const auto check = [&](const IndexSchema& index) -> Result<> {
    for (const auto& key : index.partition) TABELLA_TRY(check_index_key(index, key, item, KeyRole::hash));
    for (const auto& key : index.sort) TABELLA_TRY(check_index_key(index, key, item, KeyRole::range));
    return {};
  };
  // Of several indexes AWS names the first by the alphabet.
  const IndexSchema* first = nullptr;
  for (const auto& index : table.indexes)
    if ((!first || index.name() < first->name()) && !check(index)) first = &index;
  return first ? check(*first) : Result<>{};
}

item::Item key_of(const TableSchema& table, const IndexSchema* index, ItemView item) {
  item::ItemBuilder builder;
  const auto add = [&](const KeyAttribute& key) {
    if (const auto value = item.find(key.name)) builder.add(key.name, *value);
  };
  add(table.partition);
  if (table.sort) add(*table.sort);
  if (index) {
    for (const auto* part : {&index->partition, &index->sort})
      for (const auto& key : *part)
        if (!table.is_key(key.name)) add(key);
  }
  return builder.finish();
}

std::optional<IndexEntry> index_entry(const TableSchema& table, const IndexSchema& index, ItemView item) {
  std::vector<ValueView> partition;
  for (const auto& key : index.partition) {
    const auto value = item.find(key.name);
    if (!fits(key, value, KeyRole::hash)) return std::nullopt;
    partition.push_back(*value);
  }
  IndexEntry entry{.key = keys::index_partition(index.id, partition), .item = {}};
  for (const auto& key : index.sort) {
    const auto value = item.find(key.name);
    if (!fits(key, value, KeyRole::range)) return std::nullopt;
    keys::append_sort(entry.key, *value);
  }
  const auto sort = table.sort ? item.find(table.sort->name) : std::nullopt;
  keys::append_base_key(entry.key, *item.find(table.partition.name), sort ? &*sort : nullptr);

  if (index.projects_all()) {
    entry.item = item::Item(std::string(item.bytes()));
    return entry;
  }
  item::ItemBuilder builder;
  for (item::Attributes a(item); a.next();)
    if (is_projected(table, index, a.name())) builder.add(a.name(), a.value());
  entry.item = builder.finish();
  return entry;
}

}  // namespace tabella::engine

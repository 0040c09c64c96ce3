#include "engine/table_checks.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace tabella::engine {

using store::AttributeDefinition;
using store::IndexDefinition;
using store::KeyElement;
using store::KeyRole;
using store::refuse;
using store::Result;
using store::TableDefinition;
using store::wrong;

namespace {

constexpr size_t kMaxKeyName = 255;
constexpr size_t kMaxLocalIndexes = 5;
constexpr size_t kMaxKeyParts = 4;

template <class Named>
std::string join_names(const std::vector<Named>& elements) {
  std::string names;
  for (const auto& e : elements) {
    if (!names.empty()) names.append(", ");
    names.append(e.name);
  }
  return names;
}

bool is_defined(const std::vector<AttributeDefinition>& attributes, std::string_view name) {
  return std::ranges::any_of(attributes, [&](const auto& a) { return a.name == name; });
}

// More keys than an index can have are refused for their number, as is more than a table can have of indexes:
// there is no need to look at all of them.
Result<> check_defined(const std::vector<KeyElement>& keys,
                       const std::vector<AttributeDefinition>& attributes) {
  for (const auto& key : keys | std::views::take(2 * kMaxKeyParts))
    if (!is_defined(attributes, key.name))
      return wrong(
          fmt::format("Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], "
                      "AttributeDefinitions: [{}]",
                      join_names(keys), join_names(attributes)));
  return {};
}

// A HASH element, and perhaps a RANGE.
Result<> check_simple_keys(const std::vector<KeyElement>& keys) {
  if (keys.size() > 1 && keys[0].name == keys[1].name)
    return refuse("Both the Hash Key and the Range Key element in the KeySchema have the same name");
  if (keys[0].role != KeyRole::hash)
    return refuse("Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
  if (keys.size() > 1 && keys[1].role != KeyRole::range)
    return refuse("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
  return {};
}

// Up to four HASH elements, then up to four RANGE elements.
Result<> check_composite_keys(const std::vector<KeyElement>& keys) {
  size_t hashes = 0;
  size_t ranges = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (keys[i].name == keys[j].name)
        return refuse(fmt::format("Invalid KeySchema: Two elements in the KeySchema have the same name: {}",
                                  keys[i].name));
    if (keys[i].role == KeyRole::range)
      ++ranges;
    else if (ranges > 0)
      return refuse("Invalid KeySchema: All HASH key elements must precede the RANGE key elements");
    else
      ++hashes;
  }
  if (hashes == 0) return refuse("Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
  if (hashes > kMaxKeyParts)
    return refuse(fmt::format("Invalid KeySchema: The number of HASH key elements exceeds the limit of {}",
                              kMaxKeyParts));
  if (ranges > kMaxKeyParts)
    return refuse(fmt::format("Invalid KeySchema: The number of RANGE key elements exceeds the limit of {}",
                              kMaxKeyParts));
  return {};
}

Result<> check_projection(const IndexDefinition& index) {
  if (!index.projection) return wrong("Unknown ProjectionType: null");
  const bool include = *index.projection == store::ProjectionType::include;
  if (index.non_key_attributes && !include)
    return wrong(fmt::format("ProjectionType is {}, but NonKeyAttributes is specified",
                             *index.projection == store::ProjectionType::all ? "ALL" : "KEYS_ONLY"));
  if (!index.non_key_attributes && include)
    return wrong("ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
  if (!include) return {};
  std::set<std::string> seen;
  for (const auto& name : *index.non_key_attributes)
    if (!seen.insert(name).second) return wrong(fmt::format("Duplicate value in NonKeyAttributes: {}", name));
  return {};
}

Result<> check_unique(const std::string& name, std::set<std::string>& names) {
  if (names.insert(name).second) return {};
  return wrong(fmt::format("Duplicate index name: {}", name));
}

Result<> check_local_index(const IndexDefinition& index, const TableDefinition& table,
                           std::set<std::string>& names) {
  TABELLA_TRY(check_defined(index.key_schema, table.attributes));
  TABELLA_TRY(check_simple_keys(index.key_schema));
  if (index.key_schema.size() != 2)
    return wrong(fmt::format("Index KeySchema does not have a range key for index: {}", index.name));
  if (index.key_schema[0].name != table.key_schema[0].name)
    return wrong(fmt::format(
        "Index KeySchema does not have the same leading hash key as table KeySchema for index: {}. index "
        "hash key: {}, table hash key: {}",
        index.name, index.key_schema[0].name, table.key_schema[0].name));
  TABELLA_TRY(check_projection(index));
  return check_unique(index.name, names);
}

Result<> check_billing(const TableDefinition& d) {
  if (d.billing_mode == store::BillingMode::pay_per_request) {
    if (d.throughput)
      return wrong(
          "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
          "PAY_PER_REQUEST");
    return {};
  }
  if (!d.throughput)
    return wrong(
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED");
  if (d.on_demand_throughput)
    return wrong(
        "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is "
        "PROVISIONED.");
  return check_throughput(d.throughput);
}

Result<> check_name(const std::string& name) {
  if (name.size() <= kMaxKeyName) return {};
  return wrong(fmt::format("Key attribute names may not be longer than {} bytes: {}", kMaxKeyName, name));
}

Result<> check_names(const TableDefinition& d) {
  for (const auto& a : d.attributes) TABELLA_TRY(check_name(a.name));
  for (const auto& k : d.key_schema) TABELLA_TRY(check_name(k.name));
  for (const auto* indexes : {&d.local_indexes, &d.global_indexes}) {
    if (!*indexes) continue;
    for (const auto& index : **indexes) TABELLA_TRY(check_index_names(index));
  }
  return {};
}

Result<> check_no_duplicate_attribute(const std::vector<AttributeDefinition>& attributes) {
  std::set<std::string> seen;
  for (const auto& a : attributes)
    if (!seen.insert(a.name).second)
      return wrong(
          fmt::format("Duplicate AttributeName in AttributeDefinitions: duplicate name: {}", a.name));
  return {};
}

Result<> check_all_used(const TableDefinition& d) {
  std::set<std::string> used;
  for (const auto& key : d.key_schema) used.insert(key.name);
  for (const auto* indexes : {&d.local_indexes, &d.global_indexes}) {
    if (!*indexes) continue;
    for (const auto& index : **indexes)
      for (const auto& key : index.key_schema) used.insert(key.name);
  }
  const bool all = std::ranges::all_of(d.attributes, [&](const auto& a) { return used.contains(a.name); });
  if (all) return {};
  std::string names;
  for (const auto& name : used) names.append(names.empty() ? "" : ", ").append(name);
  return wrong(
      fmt::format("Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
                  join_names(d.attributes), names));
}

Result<> check_local_indexes(const TableDefinition& d, std::set<std::string>& names) {
  if (!d.local_indexes) return {};
  if (d.local_indexes->empty()) return wrong("List of LocalSecondaryIndexes is empty");
  if (d.key_schema.size() < 2)
    return wrong(
        "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex");
  for (const auto& index : *d.local_indexes | std::views::take(kMaxLocalIndexes))
    TABELLA_TRY(check_local_index(index, d, names));
  if (d.local_indexes->size() > kMaxLocalIndexes)
    return wrong(
        fmt::format("Number of LocalSecondaryIndexes exceeds per-table limit of {}", kMaxLocalIndexes));
  return {};
}

Result<> check_global_indexes(const TableDefinition& d, std::set<std::string>& names) {
  if (!d.global_indexes) return {};
  if (d.global_indexes->empty()) return wrong("List of GlobalSecondaryIndexes is empty");
  const bool on_demand = d.billing_mode == store::BillingMode::pay_per_request;
  for (const auto& index : *d.global_indexes | std::views::take(kMaxGlobalIndexes))
    TABELLA_TRY(check_global_index(index, d.attributes, on_demand, names));
  if (d.global_indexes->size() > kMaxGlobalIndexes)
    return wrong(
        fmt::format("GlobalSecondaryIndex count exceeds the per-table limit of {}", kMaxGlobalIndexes));
  return {};
}

}  // namespace

Result<> check_index_names(const IndexDefinition& index) {
  for (const auto& key : index.key_schema) TABELLA_TRY(check_name(key.name));
  if (index.non_key_attributes)
    for (const auto& name : *index.non_key_attributes) TABELLA_TRY(check_name(name));
  return {};
}

Result<> check_throughput(const std::optional<store::Throughput>& throughput) {
  constexpr int64_t kMax = 1'000'000'000'000;
  if (!throughput) return {};
  if (throughput->read > kMax)
    return refuse(fmt::format("Given value {} for ReadCapacityUnits is out of bounds", throughput->read));
  if (throughput->write > kMax)
    return refuse(fmt::format("Given value {} for WriteCapacityUnits is out of bounds", throughput->write));
  return {};
}

Result<> check_global_index(const IndexDefinition& index, const std::vector<AttributeDefinition>& attributes,
                            bool on_demand, std::set<std::string>& names) {
  TABELLA_TRY(check_defined(index.key_schema, attributes));
  const bool simple = index.key_schema.size() < 2 ||
                      (index.key_schema.size() == 2 && index.key_schema[1].role == KeyRole::range);
  TABELLA_TRY(simple ? check_simple_keys(index.key_schema) : check_composite_keys(index.key_schema));
  TABELLA_TRY(check_projection(index));
  if (on_demand && index.throughput)
    return wrong(fmt::format(
        "ProvisionedThroughput should not be specified for index: {} when BillingMode is PAY_PER_REQUEST",
        index.name));
  if (!on_demand && !index.throughput)
    return wrong(fmt::format("ProvisionedThroughput must be specified for index: {}", index.name));
  TABELLA_TRY(check_throughput(index.throughput));
  return check_unique(index.name, names);
}

Result<> check_definition(const TableDefinition& d) {
  TABELLA_TRY(check_names(d));
  TABELLA_TRY(check_billing(d));
  if (d.key_schema.size() > d.attributes.size())
    return refuse("Invalid KeySchema: Some index key attribute have no definition");
  TABELLA_TRY(check_defined(d.key_schema, d.attributes));
  TABELLA_TRY(check_simple_keys(d.key_schema));
  TABELLA_TRY(check_no_duplicate_attribute(d.attributes));
  if (!d.local_indexes && !d.global_indexes && d.key_schema.size() != d.attributes.size())
    return wrong(
        "Number of attributes in KeySchema does not exactly match number of attributes defined in "
        "AttributeDefinitions");
  std::set<std::string> names;
  TABELLA_TRY(check_local_indexes(d, names));
  TABELLA_TRY(check_global_indexes(d, names));
  return check_all_used(d);
}

namespace {

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

// Letters of any script, digits, blanks and + - = . _ : / @; what is beyond ASCII is taken for letters.
bool is_tag_text(std::string_view text) {
  constexpr std::string_view kAllowed = "+-=._:/@ \t";
  return std::ranges::all_of(text, [&](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kAllowed.find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<> check_tag_count(size_t count) {
  if (count <= kMaxTags) return {};
  return wrong(fmt::format("Too many tags: {}; at most {}", count, kMaxTags));
}

Result<> check_tags(const std::vector<store::Tag>& tags) {
  TABELLA_TRY(check_tag_count(tags.size()));
  constexpr size_t kMaxKey = 128;
  constexpr size_t kMaxValue = 256;
  for (const auto& tag : tags) {
    if (tag.key.empty() || characters(tag.key) > kMaxKey)
      return wrong(fmt::format("Tag keys have 1 to {} characters", kMaxKey));
    if (characters(tag.value) > kMaxValue)
      return wrong(fmt::format("Tag values have at most {} characters", kMaxValue));
    if (!is_tag_text(tag.key) || !is_tag_text(tag.value))
      return wrong(fmt::format("Tags may hold letters, digits, spaces and + - = . _ : / @ only. Tag key: {}",
                               tag.key));
  }
  return {};
}

}  // namespace tabella::engine

#include "engine/schema.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::engine {

using store::KeyRole;

namespace {

constexpr std::string_view kRegion = "us-east-1";

// The key that AWS makes for DynamoDB in every account.
constexpr std::string_view kDefaultKeyAlias = "alias/aws/dynamodb";
constexpr std::string_view kDefaultKeyId = "6f0b7c1e-2d54-4a8f-9c3b-5e1a7d904c26";

// A key is named by its id, its alias or an ARN of either. There is no KMS here that would know whose alias
// one is.
std::string key_arn(std::string_view key) {
  if (key.starts_with("arn:")) return std::string(key);
  if (key == kDefaultKeyAlias) key = kDefaultKeyId;
  const std::string_view kind = key.starts_with("alias/") ? "" : "key/";
  return fmt::format("arn:aws:kms:{}:{}:{}{}", kRegion, kAccount, kind, key);
}

}  // namespace

std::string table_arn(std::string_view name) {
  return fmt::format("arn:aws:dynamodb:{}:{}:table/{}", kRegion, kAccount, name);
}

std::string TableSchema::arn() const { return table_arn(name()); }

bool TableSchema::is_key(std::string_view attribute) const {
  return partition.name == attribute || (sort && sort->name == attribute);
}

bool TableSchema::has_local_index() const {
  return std::ranges::any_of(indexes, [](const IndexSchema& index) { return index.local; });
}

const IndexSchema* TableSchema::index(std::string_view index_name) const {
  const auto at = std::ranges::find_if(indexes, [&](const IndexSchema& i) { return i.name() == index_name; });
  return at == indexes.end() ? nullptr : &*at;
}

KeyAttribute key_attribute(const store::TableDefinition& definition, const store::KeyElement& element) {
  const auto at =
      std::ranges::find_if(definition.attributes, [&](const auto& a) { return a.name == element.name; });
  return {element.name, at->type};
}

IndexSchema make_index(uint32_t id, bool local, const store::TableDefinition& table,
                       store::IndexDefinition index) {
  IndexSchema schema{.id = id, .local = local};
  for (const auto& element : index.key_schema)
    (element.role == KeyRole::hash ? schema.partition : schema.sort).push_back(key_attribute(table, element));
  schema.definition = std::move(index);
  return schema;
}

store::OptionalThroughput warm_throughput(const std::optional<store::OptionalThroughput>& asked,
                                          const std::optional<store::Throughput>& provisioned) {
  constexpr store::Throughput kOnDemand{.read = 12000, .write = 4000};
  const auto& least = provisioned ? *provisioned : kOnDemand;
  return {.read = std::max(least.read, asked ? asked->read.value_or(0) : 0),
          .write = std::max(least.write, asked ? asked->write.value_or(0) : 0)};
}

bool is_projected(const TableSchema& table, const IndexSchema& index, std::string_view attribute) {
  if (index.projects_all() || table.is_key(attribute)) return true;
  const auto named = [&](const KeyAttribute& key) { return key.name == attribute; };
  if (std::ranges::any_of(index.partition, named) || std::ranges::any_of(index.sort, named)) return true;
  return index.definition.projection == store::ProjectionType::include &&
         index.definition.non_key_attributes &&
         std::ranges::find(*index.definition.non_key_attributes, attribute) !=
             index.definition.non_key_attributes->end();
}

store::TableDescription describe(const TableSchema& table) {
  store::TableDescription d;
  d.definition = table.definition;
  d.definition.warm_throughput =
      warm_throughput(table.definition.warm_throughput, table.definition.throughput);
  if (auto& encryption = d.definition.encryption; encryption && encryption->enabled)
    encryption->kms_key = key_arn(encryption->kms_key.value_or(std::string(kDefaultKeyAlias)));
  d.id = table.uuid;
  d.arn = table.arn();
  d.created = table.created;
  d.item_count = table.counters->items;
  d.size_bytes = table.counters->bytes;
  d.on_demand_since = table.on_demand_since;
  d.last_increase = table.last_increase;
  d.last_decrease = table.last_decrease;
  d.table_class_changed = table.table_class_changed;
  if (table.stream_id) {
    d.stream_label = table.stream_label;
    d.stream_arn = fmt::format("{}/stream/{}", d.arn, table.stream_label);
  }
  for (const auto& index : table.indexes) {
    const bool creating = index.status == store::Status::creating;
    if (creating) d.status = store::Status::updating;
    (index.local ? d.local_indexes : d.global_indexes)
        .push_back({.definition = index.definition,
                    .status = index.status,
                    .backfilling = creating,
                    .item_count = index.counters->items,
                    .size_bytes = index.counters->bytes});
  }
  for (auto& index : d.global_indexes)
    index.definition.warm_throughput =
        warm_throughput(index.definition.warm_throughput, index.definition.throughput);
  return d;
}

}  // namespace tabella::engine

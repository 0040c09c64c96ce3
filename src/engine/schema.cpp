#include "engine/schema.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::engine {

using store::KeyRole;

namespace {

constexpr std::string_view kArnPrefix = "arn:aws:dynamodb:us-east-1:000000000000:table/";

}  // namespace

std::string TableSchema::arn() const { return fmt::format("{}{}", kArnPrefix, name()); }

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
  return d;
}

}  // namespace tabella::engine

#include "wire/table_json.h"

#include <array>

#include <fmt/format.h>

#include "protocol/names.h"
#include "protocol/shapes.h"

namespace tabella::wire {

using store::BillingMode;
using store::IndexDescription;
using store::KeyRole;
using store::ProjectionType;
using store::Status;
using store::StreamView;
using store::TableClass;
using store::TableDescription;

namespace {

enum class EncryptionType { aes256, kms };
constexpr std::array<protocol::Name<EncryptionType>, 2> kEncryptionTypes = {
    {{"AES256", EncryptionType::aes256}, {"KMS", EncryptionType::kms}}};

std::optional<store::OptionalThroughput> read_pair(const Reader& reader, std::string_view member,
                                                   std::string_view read, std::string_view write) {
  const auto json = reader.structure(member, member);
  if (!json) return std::nullopt;
  const Reader inner(*json, reader.problems(), reader.path_of(member));
  return store::OptionalThroughput{inner.integer(read, "Long"), inner.integer(write, "Long")};
}

// "[KeySchemaElement(attributeName=pk, keyType=HASH)]", as AWS shows it.
std::string show_key_schema(JsonValue list) {
  std::string shown = "[";
  for (JsonElements e(list); e.next();) {
    if (shown.size() > 1) shown.append(", ");
    const auto text = [&](std::string_view member) {
      const auto value = e.value().find(member);
      return value && value->kind() == JsonValue::Kind::string ? value->string() : std::string_view("null");
    };
    shown.append(fmt::format("KeySchemaElement(attributeName={}, keyType={})", text("AttributeName"),
                             text("KeyType")));
  }
  return shown + "]";
}

void read_projection(const Reader& reader, store::IndexDefinition& index) {
  const auto json = reader.structure("Projection", "Projection");
  if (!reader.require("Projection", json)) return;
  const Reader inner(*json, reader.problems(), reader.path_of("Projection"));
  index.projection = inner.choice<ProjectionType>("ProjectionType", protocol::kProjections);
  index.non_key_attributes = inner.strings("NonKeyAttributes");
  if (index.non_key_attributes && index.non_key_attributes->empty())
    inner.violation("NonKeyAttributes", "[]", "Member must have length greater than or equal to 1");
}

}  // namespace

std::vector<store::AttributeDefinition> read_attribute_definitions(const Reader& reader, bool required) {
  std::vector<store::AttributeDefinition> attributes;
  const auto list = reader.list("AttributeDefinitions");
  if (!list) {
    if (required) reader.missing("AttributeDefinitions");
    return attributes;
  }
  size_t number = 0;
  for (JsonElements e(*list); e.next();) {
    ++number;
    if (!is_structure(e.value(), "AttributeDefinition", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(), fmt::format("attributeDefinitions.{}.member", number));
    const auto name = entry.string("AttributeName");
    entry.require("AttributeName", name);
    entry.require("AttributeType", entry.string("AttributeType"));
    const auto type = entry.choice<item::Type>("AttributeType", protocol::kKeyTypes);
    attributes.push_back({name.value_or(""), type.value_or(item::Type::S)});
  }
  return attributes;
}

std::vector<store::KeyElement> read_key_schema(const Reader& reader, size_t most) {
  std::vector<store::KeyElement> keys;
  const auto list = reader.list("KeySchema");
  if (!reader.require("KeySchema", list)) return keys;
  reader.count("KeySchema", list, show_key_schema(*list), 1, most);
  size_t number = 0;
  for (JsonElements e(*list); e.next();) {
    ++number;
    if (!is_structure(e.value(), "KeySchemaElement", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(),
                       fmt::format("{}.{}.member", reader.path_of("KeySchema"), number));
    const auto name = entry.string("AttributeName");
    entry.require("AttributeName", name);
    entry.require("KeyType", entry.string("KeyType"));
    const auto role = entry.choice<KeyRole>("KeyType", protocol::kKeyRoles);
    keys.push_back({name.value_or(""), role.value_or(KeyRole::hash)});
  }
  return keys;
}

store::IndexDefinition read_index(const Reader& reader, bool global) {
  // Four HASH and four RANGE attributes in a global index; what is beyond is refused in plain words further
  // in.
  constexpr size_t kMaxGlobalKeys = 100;
  store::IndexDefinition index;
  const auto name = reader.string("IndexName");
  reader.require("IndexName", name);
  reader.pattern("IndexName", name);
  reader.length("IndexName", name, 3, 255);
  index.name = name.value_or("");
  index.key_schema = read_key_schema(reader, global ? kMaxGlobalKeys : 2);
  read_projection(reader, index);
  if (!global) return index;
  index.throughput = read_throughput(reader);
  index.on_demand_throughput = read_on_demand(reader);
  index.warm_throughput = read_warm(reader);
  return index;
}

std::optional<store::Throughput> read_throughput(const Reader& reader) {
  const auto json = reader.structure("ProvisionedThroughput", "ProvisionedThroughput");
  if (!json) return std::nullopt;
  const Reader inner(*json, reader.problems(), reader.path_of("ProvisionedThroughput"));
  const auto write = inner.integer("WriteCapacityUnits", "Long");
  inner.require("WriteCapacityUnits", write);
  inner.at_least("WriteCapacityUnits", write, 1);
  const auto read = inner.integer("ReadCapacityUnits", "Long");
  inner.require("ReadCapacityUnits", read);
  inner.at_least("ReadCapacityUnits", read, 1);
  return store::Throughput{read.value_or(0), write.value_or(0)};
}

std::optional<store::OptionalThroughput> read_on_demand(const Reader& reader) {
  return read_pair(reader, "OnDemandThroughput", "MaxReadRequestUnits", "MaxWriteRequestUnits");
}

std::optional<store::OptionalThroughput> read_warm(const Reader& reader) {
  return read_pair(reader, "WarmThroughput", "ReadUnitsPerSecond", "WriteUnitsPerSecond");
}

std::optional<BillingMode> read_billing_mode(const Reader& reader) {
  return reader.choice<BillingMode>("BillingMode", protocol::kBillingModes);
}

std::optional<TableClass> read_table_class(const Reader& reader) {
  const auto name = reader.string("TableClass");
  if (!name) return std::nullopt;
  if (const auto known = protocol::value_of(protocol::kTableClasses, *name)) return known;
  reader.problems().late(
      "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, "
      "STANDARD_INFREQUENT_ACCESS].");
  return std::nullopt;
}

std::optional<store::ServerSideEncryption> read_encryption(const Reader& reader) {
  const auto json = reader.structure("SSESpecification", "SSESpecification");
  if (!json) return std::nullopt;
  const Reader inner(*json, reader.problems(), reader.path_of("SSESpecification"));
  store::ServerSideEncryption encryption{.enabled = inner.boolean("Enabled").value_or(false),
                                         .kms_key = inner.string("KMSMasterKeyId")};
  const auto type = inner.choice<EncryptionType>("SSEType", kEncryptionTypes);
  // AWS has the name, and nothing that it would stand for.
  if (type == EncryptionType::aes256)
    reader.problems().late("One or more parameter values were invalid: SSEType AES256 is not supported");
  if (encryption.kms_key && !type)
    reader.problems().late(
        "One or more parameter values were invalid: SSEType KMS is required if KMSMasterKeyId is specified");
  return encryption;
}

std::vector<store::Tag> read_tags(const Reader& reader) {
  std::vector<store::Tag> tags;
  const auto list = reader.list("Tags");
  if (!list) return tags;
  size_t number = 0;
  for (JsonElements e(*list); e.next();) {
    ++number;
    if (!is_structure(e.value(), "Tag", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(), fmt::format("tags.{}.member", number));
    const auto key = entry.string("Key");
    const auto value = entry.string("Value");
    entry.require("Key", key);
    entry.require("Value", value);
    tags.push_back({key.value_or(""), value.value_or("")});
  }
  return tags;
}

std::optional<store::UpdateTableRequest::Stream> read_stream(const Reader& reader) {
  const auto json = reader.structure("StreamSpecification", "StreamSpecification");
  if (!json) return std::nullopt;
  const Reader inner(*json, reader.problems(), reader.path_of("StreamSpecification"));
  const auto enabled = inner.boolean("StreamEnabled");
  inner.require("StreamEnabled", enabled);
  return store::UpdateTableRequest::Stream{
      .enabled = enabled.value_or(false),
      .view = inner.choice<StreamView>("StreamViewType", protocol::kStreamViews)};
}

namespace {

void append_throughput(std::string& out, const std::optional<store::Throughput>& throughput,
                       const TableDescription* table) {
  JsonObjectWriter json(out);
  if (table && table->last_increase)
    json.number("LastIncreaseDateTime", epoch_seconds(*table->last_increase));
  if (table && table->last_decrease)
    json.number("LastDecreaseDateTime", epoch_seconds(*table->last_decrease));
  json.number("NumberOfDecreasesToday", int64_t{0});
  json.number("ReadCapacityUnits", throughput ? throughput->read : 0);
  json.number("WriteCapacityUnits", throughput ? throughput->write : 0);
}

// CreateTable's answer has it where it was asked for, and on its way.
void write_warm(JsonObjectWriter& json, const std::optional<store::OptionalThroughput>& warm,
                const TableDescription& table) {
  if (!warm) return;
  JsonObjectWriter inner(json.key("WarmThroughput"));
  if (warm->read) inner.number("ReadUnitsPerSecond", *warm->read);
  inner.string("Status", table.status == Status::creating ? "UPDATING" : "ACTIVE");
  if (warm->write) inner.number("WriteUnitsPerSecond", *warm->write);
}

void append_index(std::string& out, const IndexDescription& index, const TableDescription& table,
                  bool global) {
  const auto& d = index.definition;
  JsonObjectWriter json(out);
  if (index.backfilling) json.boolean("Backfilling", true);
  json.string("IndexArn", fmt::format("{}/index/{}", table.arn, d.name));
  json.string("IndexName", d.name);
  json.number("IndexSizeBytes", index.size_bytes);
  if (global) json.string("IndexStatus", protocol::name_of(protocol::kStatuses, index.status));
  json.number("ItemCount", index.item_count);
  protocol::append_keys(json.key("KeySchema"), d.key_schema);
  protocol::append_projection(json.key("Projection"), d);
  if (!global) return;
  append_throughput(json.key("ProvisionedThroughput"), d.throughput, nullptr);
  protocol::write_on_demand(json, d.on_demand_throughput);
  write_warm(json, d.warm_throughput, table);
}

void append_indexes(JsonObjectWriter& json, const TableDescription& table) {
  const auto append = [&](std::string_view name, const std::vector<IndexDescription>& indexes, bool global) {
    if (indexes.empty()) return;
    JsonArrayWriter array(json.key(name));
    for (const auto& index : indexes) append_index(array.element(), index, table, global);
  };
  append("GlobalSecondaryIndexes", table.global_indexes, true);
  append("LocalSecondaryIndexes", table.local_indexes, false);
}

void append_billing(JsonObjectWriter& json, const TableDescription& table) {
  const auto& d = table.definition;
  append_throughput(json.key("ProvisionedThroughput"), d.throughput, &table);
  const bool was_on_demand = table.on_demand_since.has_value();
  if (d.billing_mode == BillingMode::pay_per_request || was_on_demand) {
    const auto mode =
        protocol::name_of(protocol::kBillingModes, d.billing_mode.value_or(BillingMode::provisioned));
    for (const auto& [summary, member] : {std::pair("BillingModeSummary", "BillingMode"),
                                          std::pair("TableThroughputModeSummary", "TableThroughputMode")}) {
      JsonObjectWriter inner(json.key(summary));
      inner.string(member, mode);
      if (was_on_demand)
        inner.number("LastUpdateToPayPerRequestDateTime", epoch_seconds(*table.on_demand_since));
    }
  }
  protocol::write_on_demand(json, d.on_demand_throughput);
}

void append_stream_specification(JsonObjectWriter& json, const TableDescription& table) {
  if (const auto view = table.definition.stream) {
    JsonObjectWriter inner(json.key("StreamSpecification"));
    inner.boolean("StreamEnabled", true);
    inner.string("StreamViewType", protocol::name_of(protocol::kStreamViews, *view));
  }
  if (table.stream_arn) json.string("LatestStreamArn", *table.stream_arn);
  if (table.stream_label) json.string("LatestStreamLabel", *table.stream_label);
}

}  // namespace

void append_description(std::string& out, const TableDescription& table) {
  const auto& d = table.definition;
  JsonObjectWriter json(out);
  json.string("TableName", d.name);
  json.string("TableStatus", protocol::name_of(protocol::kStatuses, table.status));
  json.string("TableArn", table.arn);
  json.string("TableId", table.id);
  json.number("ItemCount", table.item_count);
  json.number("TableSizeBytes", table.size_bytes);
  append_billing(json, table);
  json.boolean("DeletionProtectionEnabled", d.deletion_protection);
  append_stream_specification(json, table);
  if (table.brief) return;
  protocol::append_attributes(json.key("AttributeDefinitions"), d.attributes);
  protocol::append_keys(json.key("KeySchema"), d.key_schema);
  json.number("CreationDateTime", epoch_seconds(table.created));
  write_warm(json, d.warm_throughput, table);
  append_indexes(json, table);
  if (d.table_class) {
    JsonObjectWriter inner(json.key("TableClassSummary"));
    inner.string("TableClass", protocol::name_of(protocol::kTableClasses, *d.table_class));
    if (table.table_class_changed)
      inner.number("LastUpdateDateTime", epoch_seconds(*table.table_class_changed));
  }
  if (d.encryption && d.encryption->enabled) {
    JsonObjectWriter inner(json.key("SSEDescription"));
    inner.string("Status", table.encryption_changing ? "UPDATING" : "ENABLED");
    inner.string("SSEType", "KMS");
    if (d.encryption->kms_key) inner.string("KMSMasterKeyArn", *d.encryption->kms_key);
  }
}

void append_changed_table(std::string& out, const TableDescription& table) {
  JsonObjectWriter json(out);
  append_description(json.key("TableDescription"), table);
}

}  // namespace tabella::wire

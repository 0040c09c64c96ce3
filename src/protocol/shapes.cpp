#include "protocol/shapes.h"

#include "item/attribute_json.h"
#include "protocol/names.h"

namespace tabella::protocol {

void append_keys(std::string& out, const std::vector<store::KeyElement>& keys) {
  JsonArrayWriter array(out);
  for (const auto& key : keys) {
    JsonObjectWriter json(array.element());
    json.string("AttributeName", key.name);
    json.string("KeyType", name_of(kKeyRoles, key.role));
  }
}

void append_attributes(std::string& out, const std::vector<store::AttributeDefinition>& attributes) {
  JsonArrayWriter array(out);
  for (const auto& attribute : attributes) {
    JsonObjectWriter json(array.element());
    json.string("AttributeName", attribute.name);
    json.string("AttributeType", item::type_name(attribute.type));
  }
}

void append_projection(std::string& out, const store::IndexDefinition& index) {
  JsonObjectWriter json(out);
  if (index.projection) json.string("ProjectionType", name_of(kProjections, *index.projection));
  if (index.non_key_attributes) append_strings(json.key("NonKeyAttributes"), *index.non_key_attributes);
}

void append_tags(std::string& out, const std::vector<store::Tag>& tags) {
  JsonArrayWriter array(out);
  for (const auto& tag : tags) {
    JsonObjectWriter json(array.element());
    json.string("Key", tag.key);
    json.string("Value", tag.value);
  }
}

void append_strings(std::string& out, const std::vector<std::string>& strings) {
  JsonArrayWriter array(out);
  for (const auto& string : strings) append_json_string(array.element(), string);
}

void write_on_demand(JsonObjectWriter& json, const std::optional<store::OptionalThroughput>& maxima) {
  if (!maxima) return;
  JsonObjectWriter inner(json.key("OnDemandThroughput"));
  if (maxima->read) inner.number("MaxReadRequestUnits", *maxima->read);
  if (maxima->write) inner.number("MaxWriteRequestUnits", *maxima->write);
}

void write_time_to_live(JsonObjectWriter& json, const store::UpdateTimeToLiveRequest& specification) {
  JsonObjectWriter inner(json.key("TimeToLiveSpecification"));
  inner.boolean("Enabled", specification.enabled);
  inner.string("AttributeName", specification.attribute);
}

void append_batch(std::string& out,
                  const std::vector<std::pair<std::string, std::vector<store::BatchWrite>>>& tables) {
  JsonObjectWriter json(out);
  for (const auto& [table, writes] : tables) {
    JsonArrayWriter array(json.key(table));
    for (const auto& write : writes) {
      JsonObjectWriter entry(array.element());
      JsonObjectWriter inner(entry.key(write.put ? "PutRequest" : "DeleteRequest"));
      item::append_item_json(inner.key(write.put ? "Item" : "Key"), write.item);
    }
  }
}

void append_batch(std::string& out, const std::vector<store::BatchGetTable>& tables) {
  JsonObjectWriter json(out);
  for (const auto& table : tables) {
    JsonObjectWriter entry(json.key(table.table));
    {
      JsonArrayWriter keys(entry.key("Keys"));
      for (const auto& key : table.keys) item::append_item_json(keys.element(), key);
    }
    if (table.consistent) entry.boolean("ConsistentRead", true);
    if (table.projection) entry.string("ProjectionExpression", *table.projection);
    if (table.attributes_to_get) append_strings(entry.key("AttributesToGet"), *table.attributes_to_get);
    write_expression_attributes(entry, table.attributes);
  }
}

void write_expression_attributes(JsonObjectWriter& json, const store::ExpressionAttributes& attributes) {
  if (attributes.names) {
    JsonObjectWriter names(json.key("ExpressionAttributeNames"));
    for (const auto& [reference, name] : *attributes.names) names.string(reference, name);
  }
  if (attributes.values) item::append_item_json(json.key("ExpressionAttributeValues"), *attributes.values);
}

}  // namespace tabella::protocol

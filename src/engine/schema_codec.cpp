// How a table's schema stands in the catalogue: see facts.h.
#include "base/bytes.h"
#include "engine/facts.h"
#include "engine/schema.h"

namespace tabella::engine {
namespace {

using item::Value;
using item::ValueView;
using store::IndexDefinition;

Value encode_names(const std::vector<std::string>& names) {
  std::vector<Value> list;
  for (const auto& name : names) list.push_back(Value::string(name));
  return Value::list(std::move(list));
}

Value encode_index(const IndexSchema& index) {
  FactWriter w;
  w.integer("id", index.id);
  w.flag("local", index.local);
  w.text("name", index.name());
  w.value("keys", encode_keys(index.definition.key_schema));
  w.integer("projection", static_cast<int>(*index.definition.projection));
  if (index.definition.non_key_attributes)
    w.value("include", encode_names(*index.definition.non_key_attributes));
  w.throughput("throughput", index.definition.throughput);
  w.throughput("on_demand", index.definition.on_demand_throughput);
  w.throughput("warm", index.definition.warm_throughput);
  w.integer("status", static_cast<int>(index.status));
  return w.take();
}

IndexSchema decode_index(ValueView value, const store::TableDefinition& table) {
  const FactReader r(value);
  IndexDefinition definition;
  definition.name = r.text("name");
  definition.key_schema = decode_keys(r.find("keys"));
  definition.projection = static_cast<store::ProjectionType>(r.integer("projection").value_or(0));
  if (const auto include = r.find("include")) {
    definition.non_key_attributes.emplace();
    for (item::Elements e(*include); e.next();)
      definition.non_key_attributes->emplace_back(e.value().content());
  }
  definition.throughput = r.throughput("throughput");
  definition.on_demand_throughput = r.optional_throughput("on_demand");
  definition.warm_throughput = r.optional_throughput("warm");
  auto index = make_index(static_cast<uint32_t>(r.integer("id").value_or(0)), r.flag("local"), table,
                          std::move(definition));
  index.status = static_cast<store::Status>(r.integer("status").value_or(1));
  return index;
}

Value encode_attributes(const std::vector<store::AttributeDefinition>& attributes) {
  std::vector<Value> list;
  for (const auto& a : attributes)
    list.push_back(Value::list({Value::string(a.name), Value::string(std::string(item::type_name(a.type)))}));
  return Value::list(std::move(list));
}

Value encode_tags(const std::vector<store::Tag>& tags) {
  std::vector<Value> list;
  for (const auto& tag : tags)
    list.push_back(Value::list({Value::string(tag.key), Value::string(tag.value)}));
  return Value::list(std::move(list));
}

}  // namespace

std::string encode_schema(const TableSchema& table) {
  const auto& d = table.definition;
  FactWriter w;
  w.integer("id", table.id);
  w.text("name", d.name);
  w.text("uuid", table.uuid);
  w.time("created", table.created);
  w.value("attributes", encode_attributes(d.attributes));
  w.value("keys", encode_keys(d.key_schema));
  std::vector<Value> indexes;
  for (const auto& index : table.indexes) indexes.push_back(encode_index(index));
  w.value("indexes", Value::list(std::move(indexes)));
  w.value("tags", encode_tags(table.tags));
  if (d.billing_mode) w.integer("billing", static_cast<int>(*d.billing_mode));
  w.throughput("throughput", d.throughput);
  w.throughput("on_demand", d.on_demand_throughput);
  w.throughput("warm", d.warm_throughput);
  if (d.table_class) w.integer("class", static_cast<int>(*d.table_class));
  w.flag("protected", d.deletion_protection);
  if (d.encryption) w.flag("encryption", d.encryption->enabled);
  if (d.encryption && d.encryption->kms_key) w.text("kms_key", *d.encryption->kms_key);
  if (d.stream) w.integer("stream", static_cast<int>(*d.stream));
  if (table.stream_id) w.integer("stream_id", table.stream_id);
  if (table.stream_id) w.text("stream_label", table.stream_label);
  if (table.expiry) {
    w.integer("expiry_id", table.expiry->id);
    w.text("expiry_attribute", table.expiry->attribute);
    w.flag("expiry_filled", table.expiry->filled);
  }
  w.time("on_demand_since", table.on_demand_since);
  w.time("last_increase", table.last_increase);
  w.time("last_decrease", table.last_decrease);
  w.time("class_changed", table.table_class_changed);
  return item::encode(w.take());
}

TableSchema decode_schema(std::string_view bytes) {
  const FactReader r{ValueView(bytes)};
  TableSchema table;
  auto& d = table.definition;
  table.id = static_cast<uint32_t>(r.integer("id").value_or(0));
  d.name = r.text("name");
  table.uuid = r.text("uuid");
  table.created = r.time("created").value_or(TimePoint{});
  for (item::Elements e(*r.find("attributes")); e.next();)
    d.attributes.push_back({std::string(e.value().element(0)->content()),
                            item::type_from_name(e.value().element(1)->content()).value_or(item::Type::S)});
  d.key_schema = decode_keys(r.find("keys"));
  table.partition = key_attribute(d, d.key_schema[0]);
  if (d.key_schema.size() > 1) table.sort = key_attribute(d, d.key_schema[1]);
  for (item::Elements e(*r.find("indexes")); e.next();) table.indexes.push_back(decode_index(e.value(), d));
  for (item::Elements e(*r.find("tags")); e.next();)
    table.tags.push_back(
        {std::string(e.value().element(0)->content()), std::string(e.value().element(1)->content())});
  if (const auto mode = r.integer("billing")) d.billing_mode = static_cast<store::BillingMode>(*mode);
  d.throughput = r.throughput("throughput");
  d.on_demand_throughput = r.optional_throughput("on_demand");
  d.warm_throughput = r.optional_throughput("warm");
  if (const auto c = r.integer("class")) d.table_class = static_cast<store::TableClass>(*c);
  d.deletion_protection = r.flag("protected");
  if (r.find("encryption")) d.encryption = store::ServerSideEncryption{.enabled = r.flag("encryption")};
  if (d.encryption && r.find("kms_key")) d.encryption->kms_key = r.text("kms_key");
  if (const auto view = r.integer("stream")) d.stream = static_cast<store::StreamView>(*view);
  table.stream_id = static_cast<uint32_t>(r.integer("stream_id").value_or(0));
  table.stream_label = r.text("stream_label");
  if (const auto expiry_id = r.integer("expiry_id"))
    table.expiry = Expiry{.id = static_cast<uint32_t>(*expiry_id),
                          .attribute = r.text("expiry_attribute"),
                          .filled = r.flag("expiry_filled")};
  table.on_demand_since = r.time("on_demand_since");
  table.last_increase = r.time("last_increase");
  table.last_decrease = r.time("last_decrease");
  table.table_class_changed = r.time("class_changed");
  return table;
}

std::string encode_counters(const Counters& counters) {
  std::string bytes;
  put_varint(bytes, static_cast<uint64_t>(counters.items.load()));
  put_varint(bytes, static_cast<uint64_t>(counters.bytes.load()));
  return bytes;
}

void decode_counters(std::string_view bytes, Counters& counters) {
  counters.items = static_cast<int64_t>(take_varint(bytes));
  counters.bytes = static_cast<int64_t>(take_varint(bytes));
}

}  // namespace tabella::engine

#include "remote/result_json.h"

#include <cmath>

#include "item/attribute_json.h"
#include "protocol/error_names.h"
#include "protocol/names.h"

namespace tabella::remote {
namespace {

using Kind = JsonValue::Kind;

// Reads the members of one object; whatever has the wrong type makes the whole of it wrong.
class Members {
 public:
  explicit Members(JsonValue object) : object_(object), good_(object.kind() == Kind::object) {}

  bool good() const { return good_; }
  // An answer without it is not one: a proxy's, perhaps.
  void require(std::string_view name, Kind kind) {
    if (!find(name, kind)) good_ = false;
  }
  void spoil() { good_ = false; }

  std::optional<JsonValue> find(std::string_view name, Kind kind) {
    if (!good_) return std::nullopt;
    const auto value = object_.find(name);
    if (!value) return std::nullopt;
    if (value->kind() == kind) return value;
    good_ = false;
    return std::nullopt;
  }

  void string(std::string_view name, std::string& out) {
    if (const auto value = find(name, Kind::string)) out = value->string();
  }
  void string(std::string_view name, std::optional<std::string>& out) {
    if (const auto value = find(name, Kind::string)) out = value->string();
  }
  void boolean(std::string_view name, bool& out) {
    if (const auto value = find(name, Kind::boolean)) out = value->boolean();
  }
  std::optional<double> number(std::string_view name) {
    if (!good_) return std::nullopt;
    const auto value = object_.find(name);
    if (!value) return std::nullopt;
    if (value->kind() == Kind::integer || value->kind() == Kind::real) return value->real();
    good_ = false;
    return std::nullopt;
  }
  template <class Out>
  void number(std::string_view name, Out& out) {
    if (number(name)) out = object_.find(name)->integer();
  }
  // Seconds since 1970, with a fraction.
  std::optional<TimePoint> time(std::string_view name) {
    const auto value = number(name);
    if (!value) return std::nullopt;
    constexpr double kFarOff = 1e12;
    return time_at(std::llround(std::clamp(*value, -kFarOff, kFarOff) * 1000));
  }
  void item(std::string_view name, std::optional<item::Item>& out) {
    if (const auto value = find(name, Kind::object)) read_item(*value, out);
  }
  void read_item(JsonValue json, std::optional<item::Item>& out) {
    auto item = item::read_item(json);
    if (item)
      out = std::move(*item);
    else
      good_ = false;
  }
  // What is not among the names is left as it was: AWS adds to its lists.
  template <class E, size_t N>
  void choice(std::string_view name, const std::array<protocol::Name<E>, N>& names, E& out) {
    if (const auto known = read_choice(name, names)) out = *known;
  }
  template <class E, size_t N>
  void choice(std::string_view name, const std::array<protocol::Name<E>, N>& names, std::optional<E>& out) {
    if (const auto known = read_choice(name, names)) out = known;
  }
  // Calls `each` with the elements of an array or the values of an object.
  template <class Each>
  bool each(std::string_view name, Kind kind, Each each) {
    const auto value = find(name, kind);
    if (!value) return false;
    for (JsonElements e(*value); e.next() && good_;) good_ = each(e) && good_;
    return true;
  }
  template <class Read>
  void inner(std::string_view name, Read read) {
    const auto value = find(name, Kind::object);
    if (!value) return;
    Members members(*value);
    read(members);
    good_ = good_ && members.good();
  }

 private:
  template <class E, size_t N>
  std::optional<E> read_choice(std::string_view name, const std::array<protocol::Name<E>, N>& names) {
    const auto value = find(name, Kind::string);
    return value ? protocol::value_of(names, value->string()) : std::nullopt;
  }

  JsonValue object_;
  bool good_;
};

bool read_into(std::vector<item::Item>& items, JsonValue json) {
  auto item = item::read_item(json);
  if (item) items.push_back(std::move(*item));
  return item.has_value();
}

bool read_string(std::vector<std::string>& strings, JsonValue json) {
  if (json.kind() != Kind::string) return false;
  strings.emplace_back(json.string());
  return true;
}

void read_items(Members& members, std::string_view name, std::vector<item::Item>& items) {
  members.each(name, Kind::array, [&](const JsonElements& e) { return read_into(items, e.value()); });
}

bool read_capacity(JsonValue json, store::ConsumedCapacity& capacity) {
  Members members(json);
  members.string("TableName", capacity.table);
  capacity.table_units = members.number("CapacityUnits").value_or(0);
  if (members.number("ReadCapacityUnits")) capacity.kind = store::CapacityKind::read;
  if (members.number("WriteCapacityUnits")) capacity.kind = store::CapacityKind::write;
  members.inner("Table", [&](Members& table) {
    capacity.detail = store::CapacityDetail::indexes;
    capacity.table_units = table.number("CapacityUnits").value_or(0);
  });
  const auto indexes = [&](std::string_view name, std::map<std::string, double>& units) {
    members.each(name, Kind::object, [&](const JsonElements& e) {
      Members index(e.value());
      units[std::string(e.key())] = index.number("CapacityUnits").value_or(0);
      return index.good();
    });
  };
  indexes("GlobalSecondaryIndexes", capacity.global_indexes);
  indexes("LocalSecondaryIndexes", capacity.local_indexes);
  return members.good();
}

void read_capacity(Members& members, std::optional<store::ConsumedCapacity>& out) {
  const auto json = members.find("ConsumedCapacity", Kind::object);
  if (json && !read_capacity(*json, out.emplace())) members.spoil();
}

void read_capacities(Members& members, std::vector<store::ConsumedCapacity>& out) {
  members.each("ConsumedCapacity", Kind::array,
               [&](const JsonElements& e) { return read_capacity(e.value(), out.emplace_back()); });
}

bool read_metrics(JsonValue json, store::ItemCollectionMetrics& metrics) {
  Members members(json);
  std::optional<item::Item> key;
  members.item("ItemCollectionKey", key);
  if (key) metrics.key = std::move(*key);
  members.each("SizeEstimateRangeGB", Kind::array, [&, first = true](const JsonElements& e) mutable {
    if (std::exchange(first, false)) metrics.size_gb = static_cast<double>(e.value().integer());
    return true;
  });
  return members.good();
}

void read_table_metrics(
    Members& members,
    std::vector<std::pair<std::string, std::vector<store::ItemCollectionMetrics>>>& tables) {
  members.each("ItemCollectionMetrics", Kind::object, [&](const JsonElements& e) {
    if (e.value().kind() != Kind::array) return false;
    auto& list = tables.emplace_back(e.key(), std::vector<store::ItemCollectionMetrics>()).second;
    for (JsonElements m(e.value()); m.next();)
      if (!read_metrics(m.value(), list.emplace_back())) return false;
    return true;
  });
}

bool read_batch_write(JsonValue json, std::vector<store::BatchWrite>& writes) {
  Members members(json);
  const size_t before = writes.size();
  for (const bool put : {true, false})
    members.inner(put ? "PutRequest" : "DeleteRequest", [&](Members& inner) {
      std::optional<item::Item> item;
      inner.item(put ? "Item" : "Key", item);
      if (item) writes.push_back({.put = put, .item = std::move(*item)});
    });
  return members.good() && writes.size() == before + 1;
}

bool read_batch_keys(JsonValue json, store::BatchGetTable& table) {
  Members members(json);
  read_items(members, "Keys", table.keys);
  members.boolean("ConsistentRead", table.consistent);
  members.string("ProjectionExpression", table.projection);
  members.each("ExpressionAttributeNames", Kind::object, [&](const JsonElements& e) {
    if (e.value().kind() != Kind::string) return false;
    if (!table.attributes.names) table.attributes.names.emplace();
    table.attributes.names->emplace_back(e.key(), e.value().string());
    return true;
  });
  members.each("AttributesToGet", Kind::array, [&](const JsonElements& e) {
    if (!table.attributes_to_get) table.attributes_to_get.emplace();
    return read_string(*table.attributes_to_get, e.value());
  });
  return members.good();
}

// [{"Item": …}, {}, …]
void read_responses(Members& members, std::vector<std::optional<item::Item>>& responses) {
  members.each("Responses", Kind::array, [&](const JsonElements& e) {
    Members response(e.value());
    response.item("Item", responses.emplace_back());
    return response.good();
  });
}

void read_keys(Members& members, std::vector<store::KeyElement>& keys) {
  members.each("KeySchema", Kind::array, [&](const JsonElements& e) {
    Members key(e.value());
    auto& element = keys.emplace_back();
    key.string("AttributeName", element.name);
    key.choice("KeyType", protocol::kKeyRoles, element.role);
    return key.good();
  });
}

void read_throughput(Members& members, std::optional<store::Throughput>& out) {
  members.inner("ProvisionedThroughput", [&](Members& inner) {
    store::Throughput throughput;
    inner.number("ReadCapacityUnits", throughput.read);
    inner.number("WriteCapacityUnits", throughput.write);
    // On-demand tables show zeros.
    if (throughput.read > 0 || throughput.write > 0) out = throughput;
  });
}

void read_pair(Members& members, std::string_view name, std::string_view read, std::string_view write,
               std::optional<store::OptionalThroughput>& out) {
  members.inner(name, [&](Members& inner) {
    out.emplace();
    inner.number(read, out->read);
    inner.number(write, out->write);
  });
}

void read_shared_settings(Members& members, std::optional<store::Throughput>& throughput,
                          std::optional<store::OptionalThroughput>& on_demand,
                          std::optional<store::OptionalThroughput>& warm) {
  read_throughput(members, throughput);
  read_pair(members, "OnDemandThroughput", "MaxReadRequestUnits", "MaxWriteRequestUnits", on_demand);
  read_pair(members, "WarmThroughput", "ReadUnitsPerSecond", "WriteUnitsPerSecond", warm);
}

bool read_index(JsonValue json, store::IndexDescription& index) {
  Members members(json);
  auto& d = index.definition;
  members.string("IndexName", d.name);
  read_keys(members, d.key_schema);
  members.inner("Projection", [&](Members& projection) {
    projection.choice("ProjectionType", protocol::kProjections, d.projection);
    projection.each("NonKeyAttributes", Kind::array, [&](const JsonElements& e) {
      if (!d.non_key_attributes) d.non_key_attributes.emplace();
      return read_string(*d.non_key_attributes, e.value());
    });
  });
  read_shared_settings(members, d.throughput, d.on_demand_throughput, d.warm_throughput);
  if (members.find("IndexStatus", Kind::string)) index.status = store::Status::updating;  // if it is another
  members.choice("IndexStatus", protocol::kStatuses, index.status);
  members.boolean("Backfilling", index.backfilling);
  members.number("ItemCount", index.item_count);
  members.number("IndexSizeBytes", index.size_bytes);
  return members.good();
}

void read_indexes(Members& members, std::string_view name, std::vector<store::IndexDescription>& indexes) {
  members.each(name, Kind::array,
               [&](const JsonElements& e) { return read_index(e.value(), indexes.emplace_back()); });
}

void read_table(Members& members, store::TableDescription& table) {
  auto& d = table.definition;
  members.string("TableName", d.name);
  members.string("TableArn", table.arn);
  members.string("TableId", table.id);
  table.status = store::Status::updating;  // what we do not know the name of is not active
  members.choice("TableStatus", protocol::kStatuses, table.status);
  members.number("ItemCount", table.item_count);
  members.number("TableSizeBytes", table.size_bytes);
  if (const auto created = members.time("CreationDateTime")) table.created = *created;
  read_shared_settings(members, d.throughput, d.on_demand_throughput, d.warm_throughput);
  members.inner("ProvisionedThroughput", [&](Members& throughput) {
    table.last_increase = throughput.time("LastIncreaseDateTime");
    table.last_decrease = throughput.time("LastDecreaseDateTime");
  });
  members.inner("BillingModeSummary", [&](Members& summary) {
    summary.choice("BillingMode", protocol::kBillingModes, d.billing_mode);
    table.on_demand_since = summary.time("LastUpdateToPayPerRequestDateTime");
  });
  members.boolean("DeletionProtectionEnabled", d.deletion_protection);
  members.inner("StreamSpecification", [&](Members& stream) {
    bool enabled = false;
    stream.boolean("StreamEnabled", enabled);
    if (enabled) stream.choice("StreamViewType", protocol::kStreamViews, d.stream);
  });
  members.string("LatestStreamArn", table.stream_arn);
  members.string("LatestStreamLabel", table.stream_label);
  members.each("AttributeDefinitions", Kind::array, [&](const JsonElements& e) {
    Members inner(e.value());
    auto& attribute = d.attributes.emplace_back();
    inner.string("AttributeName", attribute.name);
    inner.choice("AttributeType", protocol::kKeyTypes, attribute.type);
    return inner.good();
  });
  read_keys(members, d.key_schema);
  read_indexes(members, "GlobalSecondaryIndexes", table.global_indexes);
  read_indexes(members, "LocalSecondaryIndexes", table.local_indexes);
  members.inner("TableClassSummary", [&](Members& summary) {
    summary.choice("TableClass", protocol::kTableClasses, d.table_class);
    table.table_class_changed = summary.time("LastUpdateDateTime");
  });
  members.inner("SSEDescription", [&](Members& encryption) {
    d.encryption.emplace(store::ServerSideEncryption{.enabled = true, .kms_key = {}});
    encryption.string("KMSMasterKeyArn", d.encryption->kms_key);
  });
}

bool read_shard(JsonValue json, store::ShardDescription& shard) {
  Members members(json);
  members.string("ShardId", shard.id);
  members.string("ParentShardId", shard.parent);
  members.inner("SequenceNumberRange", [&](Members& range) {
    range.string("StartingSequenceNumber", shard.first);
    range.string("EndingSequenceNumber", shard.last);
  });
  return members.good();
}

bool read_record(JsonValue json, store::StreamRecord& record) {
  Members members(json);
  members.string("eventID", record.id);
  members.choice("eventName", protocol::kStreamEvents, record.event);
  members.inner("dynamodb", [&](Members& change) {
    if (const auto created = change.time("ApproximateCreationDateTime")) record.created = *created;
    std::optional<item::Item> keys;
    change.item("Keys", keys);
    if (keys) record.keys = std::move(*keys);
    change.item("NewImage", record.new_image);
    change.item("OldImage", record.old_image);
    change.string("SequenceNumber", record.sequence);
    change.choice("StreamViewType", protocol::kStreamViews, record.view);
  });
  members.inner("userIdentity", [&](Members& identity) {
    std::string type;
    identity.string("Type", type);
    record.by_service = type == "Service" || type == "service";
  });
  return members.good();
}

}  // namespace

bool read(JsonValue json, store::WriteResult& result) {
  Members members(json);
  members.item("Attributes", result.attributes);
  read_capacity(members, result.capacity);
  if (const auto metrics = members.find("ItemCollectionMetrics", Kind::object))
    return read_metrics(*metrics, result.collection_metrics.emplace());
  return members.good();
}

bool read(JsonValue json, store::GetItemResult& result) {
  Members members(json);
  members.item("Item", result.item);
  read_capacity(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::Page& result) {
  Members members(json);
  members.require("Count", Kind::integer);
  read_items(members, "Items", result.items);
  members.number("Count", result.count);
  members.number("ScannedCount", result.scanned);
  result.count_only = !members.find("Items", Kind::array);
  members.item("LastEvaluatedKey", result.last_key);
  read_capacity(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::BatchGetItemResult& result) {
  Members members(json);
  members.require("Responses", Kind::object);
  members.each("Responses", Kind::object, [&](const JsonElements& e) {
    if (e.value().kind() != Kind::array) return false;
    auto& items = result.responses.emplace_back(e.key(), std::vector<item::Item>()).second;
    for (JsonElements i(e.value()); i.next();)
      if (!read_into(items, i.value())) return false;
    return true;
  });
  members.each("UnprocessedKeys", Kind::object, [&](const JsonElements& e) {
    auto& table = result.unprocessed.emplace_back();
    table.table = e.key();
    return read_batch_keys(e.value(), table);
  });
  read_capacities(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::BatchWriteItemResult& result) {
  Members members(json);
  members.each("UnprocessedItems", Kind::object, [&](const JsonElements& e) {
    if (e.value().kind() != Kind::array) return false;
    auto& writes = result.unprocessed.emplace_back(e.key(), std::vector<store::BatchWrite>()).second;
    for (JsonElements w(e.value()); w.next();)
      if (!read_batch_write(w.value(), writes)) return false;
    return true;
  });
  read_capacities(members, result.capacity);
  read_table_metrics(members, result.collection_metrics);
  return members.good();
}

bool read(JsonValue json, store::TransactWriteItemsResult& result) {
  Members members(json);
  read_capacities(members, result.capacity);
  read_table_metrics(members, result.collection_metrics);
  return members.good();
}

bool read(JsonValue json, store::TransactGetItemsResult& result) {
  Members members(json);
  members.require("Responses", Kind::array);
  read_responses(members, result.responses);
  read_capacities(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::ExecuteStatementResult& result) {
  Members members(json);
  members.require("Items", Kind::array);
  read_items(members, "Items", result.items);
  members.string("NextToken", result.next_token);
  members.item("LastEvaluatedKey", result.last_key);
  read_capacity(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::BatchExecuteStatementResult& result) {
  Members members(json);
  members.require("Responses", Kind::array);
  members.each("Responses", Kind::array, [&](const JsonElements& e) {
    Members inner(e.value());
    auto& response = result.responses.emplace_back();
    inner.string("TableName", response.table);
    inner.item("Item", response.item);
    inner.inner("Error", [&](Members& error) {
      std::string code;
      std::string message;
      error.string("Code", code);
      error.string("Message", message);
      response.error.emplace(protocol::statement_error_code(code), std::move(message));
      error.item("Item", response.error->item);
    });
    return inner.good();
  });
  read_capacities(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::ExecuteTransactionResult& result) {
  Members members(json);
  read_responses(members, result.responses);
  read_capacities(members, result.capacity);
  return members.good();
}

bool read(JsonValue json, store::TableDescription& result) {
  Members members(json);
  // DescribeTable calls it Table.
  for (const auto* name : {"TableDescription", "Table"})
    members.inner(name, [&](Members& table) { read_table(table, result); });
  return members.good() && !result.definition.name.empty();
}

bool read(JsonValue json, store::ListTablesResult& result) {
  Members members(json);
  members.require("TableNames", Kind::array);
  members.each("TableNames", Kind::array,
               [&](const JsonElements& e) { return read_string(result.names, e.value()); });
  members.string("LastEvaluatedTableName", result.last);
  return members.good();
}

bool read(JsonValue json, store::UpdateTimeToLiveRequest& result) {
  Members members(json);
  members.require("TimeToLiveSpecification", Kind::object);
  members.inner("TimeToLiveSpecification", [&](Members& inner) {
    inner.boolean("Enabled", result.enabled);
    inner.string("AttributeName", result.attribute);
  });
  return members.good();
}

bool read(JsonValue json, store::TimeToLiveDescription& result) {
  Members members(json);
  members.require("TimeToLiveDescription", Kind::object);
  members.inner("TimeToLiveDescription", [&](Members& inner) {
    inner.choice("TimeToLiveStatus", protocol::kTimeToLiveStatuses, result.status);
    inner.string("AttributeName", result.attribute);
  });
  return members.good();
}

bool read(JsonValue json, TagPage& result) {
  Members members(json);
  members.require("Tags", Kind::array);
  members.each("Tags", Kind::array, [&](const JsonElements& e) {
    Members inner(e.value());
    auto& tag = result.tags.emplace_back();
    inner.string("Key", tag.key);
    inner.string("Value", tag.value);
    return inner.good();
  });
  members.string("NextToken", result.next);
  return members.good();
}

bool read(JsonValue json, store::ListStreamsResult& result) {
  Members members(json);
  members.require("Streams", Kind::array);
  members.each("Streams", Kind::array, [&](const JsonElements& e) {
    Members inner(e.value());
    auto& stream = result.streams.emplace_back();
    inner.string("StreamArn", stream.arn);
    inner.string("TableName", stream.table);
    inner.string("StreamLabel", stream.label);
    return inner.good();
  });
  members.string("LastEvaluatedStreamArn", result.last);
  return members.good();
}

bool read(JsonValue json, store::StreamDescription& result) {
  Members members(json);
  members.require("StreamDescription", Kind::object);
  members.inner("StreamDescription", [&](Members& stream) {
    stream.string("StreamArn", result.arn);
    stream.string("StreamLabel", result.label);
    stream.string("TableName", result.table);
    std::string status;
    stream.string("StreamStatus", status);
    result.enabled = status == "ENABLED" || status == "ENABLING";
    stream.choice("StreamViewType", protocol::kStreamViews, result.view);
    if (const auto created = stream.time("CreationRequestDateTime")) result.created = *created;
    read_keys(stream, result.key_schema);
    stream.each("Shards", Kind::array,
                [&](const JsonElements& e) { return read_shard(e.value(), result.shards.emplace_back()); });
    stream.string("LastEvaluatedShardId", result.last_shard);
  });
  return members.good();
}

bool read(JsonValue json, store::GetRecordsResult& result) {
  Members members(json);
  members.require("Records", Kind::array);
  members.each("Records", Kind::array,
               [&](const JsonElements& e) { return read_record(e.value(), result.records.emplace_back()); });
  members.string("NextShardIterator", result.next);
  return members.good();
}

bool read(JsonValue json, std::string& shard_iterator) {
  Members members(json);
  members.string("ShardIterator", shard_iterator);
  return members.good() && !shard_iterator.empty();
}

bool read(JsonValue json, ErrorBody& result) {
  Members members(json);
  members.string("__type", result.type);
  members.string("message", result.message);
  members.string("Message", result.message);
  if (!members.good()) return false;
  members.item("Item", result.item);
  members.each("CancellationReasons", Kind::array, [&](const JsonElements& e) {
    Members inner(e.value());
    auto& reason = result.reasons.emplace_back();
    inner.string("Code", reason.code);
    inner.string("Message", reason.message);
    inner.item("Item", reason.item);
    return inner.good();
  });
  return true;  // what else there is does not change which error it is
}

}  // namespace tabella::remote

#include "remote/request_json.h"

#include "item/attribute_json.h"
#include "protocol/names.h"
#include "protocol/shapes.h"

namespace tabella::remote {
namespace {

using protocol::name_of;
using store::CapacityDetail;

// Writes the members of one request between the braces.
template <class Write>
std::string object(Write write) {
  std::string out;
  out.reserve(512);
  {
    JsonObjectWriter json(out);
    write(json);
  }
  return out;
}

void write_string(JsonObjectWriter& json, std::string_view name, const std::optional<std::string>& value) {
  if (value) json.string(name, *value);
}

void write_number(JsonObjectWriter& json, std::string_view name, const std::optional<int64_t>& value) {
  if (value) json.number(name, *value);
}

void write_item(JsonObjectWriter& json, std::string_view name, const item::Item& item) {
  item::append_item_json(json.key(name), item);
}

void write_capacity(JsonObjectWriter& json, CapacityDetail detail) {
  if (detail != CapacityDetail::none)
    json.string("ReturnConsumedCapacity", name_of(protocol::kCapacityDetails, detail));
}

void write_collection_metrics(JsonObjectWriter& json, bool wanted) {
  if (wanted) json.string("ReturnItemCollectionMetrics", "SIZE");
}

void write_return_on_failure(JsonObjectWriter& json, bool wanted) {
  if (wanted) json.string("ReturnValuesOnConditionCheckFailure", "ALL_OLD");
}

void write_combine(JsonObjectWriter& json, const std::optional<store::Combine>& combine) {
  if (combine) json.string("ConditionalOperator", name_of(protocol::kCombines, *combine));
}

void append_values(std::string& out, const std::vector<std::string>& flat_values) {
  JsonArrayWriter array(out);
  for (const auto& flat : flat_values) item::append_value_json(array.element(), item::ValueView(flat));
}

// Expected, KeyConditions, QueryFilter and ScanFilter.
void write_conditions(JsonObjectWriter& json, std::string_view name,
                      const std::optional<std::vector<store::LegacyCondition>>& conditions) {
  if (!conditions) return;
  JsonObjectWriter map(json.key(name));
  for (const auto& condition : *conditions) {
    JsonObjectWriter entry(map.key(condition.attribute));
    write_string(entry, "ComparisonOperator", condition.comparison);
    if (condition.values) append_values(entry.key("AttributeValueList"), *condition.values);
    if (condition.value) item::append_value_json(entry.key("Value"), item::ValueView(*condition.value));
    if (condition.exists) entry.boolean("Exists", *condition.exists);
  }
}

void write_options(JsonObjectWriter& json, const store::WriteOptions& options) {
  write_string(json, "ConditionExpression", options.condition);
  protocol::write_expression_attributes(json, options.attributes);
  write_conditions(json, "Expected", options.expected);
  write_combine(json, options.conditional_operator);
  if (options.return_values != store::ReturnValues::none)
    json.string("ReturnValues", name_of(protocol::kReturnValues, options.return_values));
  write_return_on_failure(json, options.return_old_on_failure);
  write_capacity(json, options.capacity);
  write_collection_metrics(json, options.collection_metrics);
}

void write_options(JsonObjectWriter& json, const store::ReadOptions& options, std::string_view filter_name) {
  json.string("TableName", options.table);
  write_string(json, "IndexName", options.index);
  if (options.select) json.string("Select", name_of(protocol::kSelects, *options.select));
  write_number(json, "Limit", options.limit);
  if (options.start_key) write_item(json, "ExclusiveStartKey", *options.start_key);
  write_string(json, "FilterExpression", options.filter);
  write_string(json, "ProjectionExpression", options.projection);
  protocol::write_expression_attributes(json, options.attributes);
  if (options.attributes_to_get)
    protocol::append_strings(json.key("AttributesToGet"), *options.attributes_to_get);
  write_conditions(json, filter_name, options.legacy_filter);
  write_combine(json, options.conditional_operator);
  if (options.consistent) json.boolean("ConsistentRead", true);
  write_capacity(json, options.capacity);
}

void write_statement(JsonObjectWriter& json, const store::Statement& statement) {
  json.string("Statement", statement.text);
  if (statement.parameters) append_values(json.key("Parameters"), *statement.parameters);
  if (statement.consistent) json.boolean("ConsistentRead", true);
  write_return_on_failure(json, statement.return_old_on_failure);
}

void append_statements(std::string& out, const std::vector<store::Statement>& statements) {
  JsonArrayWriter array(out);
  for (const auto& statement : statements) {
    JsonObjectWriter json(array.element());
    write_statement(json, statement);
  }
}

void write_throughput(JsonObjectWriter& json, const std::optional<store::Throughput>& throughput) {
  if (!throughput) return;
  JsonObjectWriter inner(json.key("ProvisionedThroughput"));
  inner.number("ReadCapacityUnits", throughput->read);
  inner.number("WriteCapacityUnits", throughput->write);
}

void write_warm(JsonObjectWriter& json, const std::optional<store::OptionalThroughput>& warm) {
  if (!warm) return;
  JsonObjectWriter inner(json.key("WarmThroughput"));
  write_number(inner, "ReadUnitsPerSecond", warm->read);
  write_number(inner, "WriteUnitsPerSecond", warm->write);
}

void append_index(std::string& out, const store::IndexDefinition& index) {
  JsonObjectWriter json(out);
  json.string("IndexName", index.name);
  protocol::append_keys(json.key("KeySchema"), index.key_schema);
  protocol::append_projection(json.key("Projection"), index);
  write_throughput(json, index.throughput);
  protocol::write_on_demand(json, index.on_demand_throughput);
  write_warm(json, index.warm_throughput);
}

void write_indexes(JsonObjectWriter& json, std::string_view name,
                   const std::optional<std::vector<store::IndexDefinition>>& indexes) {
  if (!indexes) return;
  JsonArrayWriter array(json.key(name));
  for (const auto& index : *indexes) append_index(array.element(), index);
}

// What CreateTable and UpdateTable have in common.
template <class Table>
void write_table_settings(JsonObjectWriter& json, const Table& table) {
  if (table.billing_mode) json.string("BillingMode", name_of(protocol::kBillingModes, *table.billing_mode));
  write_throughput(json, table.throughput);
  protocol::write_on_demand(json, table.on_demand_throughput);
  write_warm(json, table.warm_throughput);
  if (table.table_class) json.string("TableClass", name_of(protocol::kTableClasses, *table.table_class));
  if (table.encryption) {
    JsonObjectWriter inner(json.key("SSESpecification"));
    inner.boolean("Enabled", table.encryption->enabled);
    if (table.encryption->kms_key) inner.string("SSEType", "KMS");  // AWS wants it with a key
    write_string(inner, "KMSMasterKeyId", table.encryption->kms_key);
  }
}

void write_stream(JsonObjectWriter& json, bool enabled, const std::optional<store::StreamView>& view) {
  JsonObjectWriter inner(json.key("StreamSpecification"));
  inner.boolean("StreamEnabled", enabled);
  if (view) inner.string("StreamViewType", name_of(protocol::kStreamViews, *view));
}

void append_index_update(std::string& out, const store::GlobalIndexUpdate& update) {
  JsonObjectWriter json(out);
  if (update.create) append_index(json.key("Create"), *update.create);
  if (update.remove) {
    JsonObjectWriter inner(json.key("Delete"));
    inner.string("IndexName", *update.remove);
  }
  if (update.update) {
    JsonObjectWriter inner(json.key("Update"));
    inner.string("IndexName", update.update->name);
    write_throughput(inner, update.update->throughput);
    protocol::write_on_demand(inner, update.update->on_demand_throughput);
    write_warm(inner, update.update->warm_throughput);
  }
}

void append_action(std::string& out, const store::TransactWrite& write) {
  JsonObjectWriter json(out);
  JsonObjectWriter inner(json.key(name_of(protocol::kTransactWrites, write.kind)));
  inner.string("TableName", write.table);
  write_item(inner, write.kind == store::TransactWrite::Kind::put ? "Item" : "Key", write.item);
  write_string(inner, "UpdateExpression", write.update);
  write_string(inner, "ConditionExpression", write.condition);
  protocol::write_expression_attributes(inner, write.attributes);
  write_return_on_failure(inner, write.return_old_on_failure);
}

}  // namespace

std::string to_json(const store::PutItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    write_item(json, "Item", request.item);
    write_options(json, request.options);
  });
}

std::string to_json(const store::UpdateItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    write_item(json, "Key", request.key);
    write_string(json, "UpdateExpression", request.update);
    if (request.updates) {
      JsonObjectWriter updates(json.key("AttributeUpdates"));
      for (const auto& update : *request.updates) {
        JsonObjectWriter entry(updates.key(update.attribute));
        entry.string("Action", update.action);
        if (update.value) item::append_value_json(entry.key("Value"), item::ValueView(*update.value));
      }
    }
    write_options(json, request.options);
  });
}

std::string to_json(const store::DeleteItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    write_item(json, "Key", request.key);
    write_options(json, request.options);
  });
}

std::string to_json(const store::GetItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    write_item(json, "Key", request.key);
    if (request.consistent) json.boolean("ConsistentRead", true);
    write_string(json, "ProjectionExpression", request.projection);
    if (request.attributes_to_get)
      protocol::append_strings(json.key("AttributesToGet"), *request.attributes_to_get);
    protocol::write_expression_attributes(json, request.attributes);
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::QueryRequest& request) {
  return object([&](JsonObjectWriter& json) {
    write_options(json, request.options, "QueryFilter");
    write_string(json, "KeyConditionExpression", request.key_condition);
    write_conditions(json, "KeyConditions", request.key_conditions);
    if (!request.forward) json.boolean("ScanIndexForward", false);
  });
}

std::string to_json(const store::ScanRequest& request) {
  return object([&](JsonObjectWriter& json) {
    write_options(json, request.options, "ScanFilter");
    write_number(json, "Segment", request.segment);
    write_number(json, "TotalSegments", request.total_segments);
  });
}

std::string to_json(const store::BatchGetItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    protocol::append_batch(json.key("RequestItems"), request.tables);
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::BatchWriteItemRequest& request) {
  return object([&](JsonObjectWriter& json) {
    protocol::append_batch(json.key("RequestItems"), request.tables);
    write_capacity(json, request.capacity);
    write_collection_metrics(json, request.collection_metrics);
  });
}

std::string to_json(const store::TransactWriteItemsRequest& request) {
  return object([&](JsonObjectWriter& json) {
    {
      JsonArrayWriter actions(json.key("TransactItems"));
      for (const auto& write : request.writes) append_action(actions.element(), write);
    }
    write_string(json, "ClientRequestToken", request.token);
    write_capacity(json, request.capacity);
    write_collection_metrics(json, request.collection_metrics);
  });
}

std::string to_json(const store::TransactGetItemsRequest& request) {
  return object([&](JsonObjectWriter& json) {
    {
      JsonArrayWriter actions(json.key("TransactItems"));
      for (const auto& get : request.gets) {
        JsonObjectWriter action(actions.element());
        JsonObjectWriter inner(action.key("Get"));
        inner.string("TableName", get.table);
        write_item(inner, "Key", get.key);
        write_string(inner, "ProjectionExpression", get.projection);
        protocol::write_expression_attributes(inner, get.attributes);
      }
    }
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::ExecuteStatementRequest& request) {
  return object([&](JsonObjectWriter& json) {
    write_statement(json, request.statement);
    write_number(json, "Limit", request.limit);
    write_string(json, "NextToken", request.next_token);
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::BatchExecuteStatementRequest& request) {
  return object([&](JsonObjectWriter& json) {
    append_statements(json.key("Statements"), request.statements);
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::ExecuteTransactionRequest& request) {
  return object([&](JsonObjectWriter& json) {
    append_statements(json.key("TransactStatements"), request.statements);
    write_string(json, "ClientRequestToken", request.token);
    write_capacity(json, request.capacity);
  });
}

std::string to_json(const store::CreateTableRequest& request) {
  const auto& table = request.definition;
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", table.name);
    protocol::append_attributes(json.key("AttributeDefinitions"), table.attributes);
    protocol::append_keys(json.key("KeySchema"), table.key_schema);
    write_indexes(json, "LocalSecondaryIndexes", table.local_indexes);
    write_indexes(json, "GlobalSecondaryIndexes", table.global_indexes);
    write_table_settings(json, table);
    if (table.stream) write_stream(json, true, table.stream);
    if (table.deletion_protection) json.boolean("DeletionProtectionEnabled", true);
    if (!request.tags.empty()) protocol::append_tags(json.key("Tags"), request.tags);
  });
}

std::string to_json(const store::UpdateTableRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    if (!request.attributes.empty())
      protocol::append_attributes(json.key("AttributeDefinitions"), request.attributes);
    if (!request.global_index_updates.empty()) {
      JsonArrayWriter updates(json.key("GlobalSecondaryIndexUpdates"));
      for (const auto& update : request.global_index_updates) append_index_update(updates.element(), update);
    }
    write_table_settings(json, request);
    if (request.stream) write_stream(json, request.stream->enabled, request.stream->view);
    if (request.deletion_protection) json.boolean("DeletionProtectionEnabled", *request.deletion_protection);
  });
}

std::string to_json(const store::ListTablesRequest& request) {
  return object([&](JsonObjectWriter& json) {
    write_string(json, "ExclusiveStartTableName", request.start);
    json.number("Limit", request.limit);
  });
}

std::string to_json(const store::UpdateTimeToLiveRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("TableName", request.table);
    protocol::write_time_to_live(json, request);
  });
}

std::string to_json(const store::TagResourceRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("ResourceArn", request.arn);
    protocol::append_tags(json.key("Tags"), request.tags);
  });
}

std::string to_json(const store::UntagResourceRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("ResourceArn", request.arn);
    protocol::append_strings(json.key("TagKeys"), request.keys);
  });
}

std::string to_json(const store::ListStreamsRequest& request) {
  return object([&](JsonObjectWriter& json) {
    write_string(json, "TableName", request.table);
    write_string(json, "ExclusiveStartStreamArn", request.start);
    json.number("Limit", request.limit);
  });
}

std::string to_json(const store::DescribeStreamRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("StreamArn", request.arn);
    write_string(json, "ExclusiveStartShardId", request.start);
    json.number("Limit", request.limit);
    if (!request.parent) return;
    JsonObjectWriter filter(json.key("ShardFilter"));
    filter.string("Type", "CHILD_SHARDS");
    filter.string("ShardId", *request.parent);
  });
}

std::string to_json(const store::GetShardIteratorRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("StreamArn", request.arn);
    json.string("ShardId", request.shard);
    json.string("ShardIteratorType", name_of(protocol::kIteratorTypes, request.type));
    write_string(json, "SequenceNumber", request.sequence);
  });
}

std::string to_json(const store::GetRecordsRequest& request) {
  return object([&](JsonObjectWriter& json) {
    json.string("ShardIterator", request.iterator);
    json.number("Limit", request.limit);
  });
}

std::string tags_request(std::string_view arn, const std::optional<std::string>& next_token) {
  return object([&](JsonObjectWriter& json) {
    json.string("ResourceArn", arn);
    write_string(json, "NextToken", next_token);
  });
}

std::string to_json(std::string_view member, std::string_view value) {
  return object([&](JsonObjectWriter& json) { json.string(member, value); });
}

}  // namespace tabella::remote

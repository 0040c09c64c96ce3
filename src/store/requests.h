// The requests and results of Store, one pair per operation, named as DynamoDB names them. Expressions travel
// as text and legacy parameters as they are, so that any implementation can pass them on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "expression/bind.h"
#include "expression/legacy.h"
#include "item/value.h"
#include "store/error.h"
#include "store/table.h"

namespace tabella::store {

using expression::Combine;
using expression::LegacyCondition;
using expression::LegacyUpdate;
using expression::Names;
using item::Item;

enum class ReturnValues { none, all_old, updated_old, all_new, updated_new };
enum class CapacityDetail { none, total, indexes };

// Transactions say of their units whether they were for reading or for writing.
enum class CapacityKind { plain, read, write };

struct ConsumedCapacity {
  std::string table;
  double table_units = 0;
  std::map<std::string, double> global_indexes;
  std::map<std::string, double> local_indexes;
  CapacityDetail detail = CapacityDetail::total;
  CapacityKind kind = CapacityKind::plain;

  double total() const {
    double sum = table_units;
    for (const auto& [name, units] : global_indexes) sum += units;
    for (const auto& [name, units] : local_indexes) sum += units;
    return sum;
  }
};

struct ItemCollectionMetrics {
  Item key;  // the partition key
  double size_gb = 0;
};

// ExpressionAttributeNames and -Values; present even if empty, because AWS refuses empty ones.
struct ExpressionAttributes {
  std::optional<Names> names;
  std::optional<Item> values;

  const Names& names_or_none() const {
    static const Names kNone;
    return names ? *names : kNone;
  }
  item::ItemView values_or_none() const { return values ? values->view() : item::ItemView(); }
};

// What PutItem, UpdateItem and DeleteItem have in common.
struct WriteOptions {
  std::optional<std::string> condition;
  ExpressionAttributes attributes;
  std::optional<std::vector<LegacyCondition>> expected;
  std::optional<Combine> conditional_operator;
  ReturnValues return_values = ReturnValues::none;
  bool return_old_on_failure = false;
  CapacityDetail capacity = CapacityDetail::none;
  bool collection_metrics = false;
};

struct WriteResult {
  std::optional<Item> attributes;
  std::optional<ConsumedCapacity> capacity;
  std::optional<ItemCollectionMetrics> collection_metrics;
};

struct PutItemRequest {
  std::string table;
  Item item;
  WriteOptions options;
};

struct DeleteItemRequest {
  std::string table;
  Item key;
  WriteOptions options;
};

struct UpdateItemRequest {
  std::string table;
  Item key;
  std::optional<std::string> update;
  std::optional<std::vector<LegacyUpdate>> updates;
  WriteOptions options;
};

struct GetItemRequest {
  std::string table;
  Item key;
  bool consistent = false;
  std::optional<std::string> projection;
  std::optional<std::vector<std::string>> attributes_to_get;
  ExpressionAttributes attributes;
  CapacityDetail capacity = CapacityDetail::none;
};

struct GetItemResult {
  std::optional<Item> item;
  std::optional<ConsumedCapacity> capacity;
};

enum class Select { all_attributes, all_projected_attributes, specific_attributes, count };

// What Query and Scan have in common.
struct ReadOptions {
  std::string table;
  std::optional<std::string> index;
  std::optional<Select> select;
  std::optional<int64_t> limit;
  std::optional<Item> start_key;
  std::optional<std::string> filter;
  std::optional<std::string> projection;
  ExpressionAttributes attributes;
  std::optional<std::vector<std::string>> attributes_to_get;
  std::optional<std::vector<LegacyCondition>> legacy_filter;  // QueryFilter, ScanFilter
  std::optional<Combine> conditional_operator;
  bool consistent = false;
  CapacityDetail capacity = CapacityDetail::none;
};

struct QueryRequest {
  ReadOptions options;
  std::optional<std::string> key_condition;
  std::optional<std::vector<LegacyCondition>> key_conditions;
  bool forward = true;
};

struct ScanRequest {
  ReadOptions options;
  std::optional<int64_t> segment;
  std::optional<int64_t> total_segments;
};

struct Page {
  std::vector<Item> items;
  int64_t count = 0;
  int64_t scanned = 0;
  bool count_only = false;
  std::optional<Item> last_key;
  std::optional<ConsumedCapacity> capacity;
};

struct BatchGetTable {
  std::string table;
  std::vector<Item> keys;
  bool consistent = false;
  std::optional<std::string> projection;
  std::optional<std::vector<std::string>> attributes_to_get;
  ExpressionAttributes attributes;
};

struct BatchGetItemRequest {
  std::vector<BatchGetTable> tables;
  CapacityDetail capacity = CapacityDetail::none;
};

struct BatchGetItemResult {
  std::vector<std::pair<std::string, std::vector<Item>>> responses;
  std::vector<BatchGetTable> unprocessed;
  std::vector<ConsumedCapacity> capacity;
};

struct BatchWrite {
  bool put = true;
  Item item;  // the item to put, or the key to delete
};

struct BatchWriteItemRequest {
  std::vector<std::pair<std::string, std::vector<BatchWrite>>> tables;
  CapacityDetail capacity = CapacityDetail::none;
  bool collection_metrics = false;
};

struct BatchWriteItemResult {
  std::vector<std::pair<std::string, std::vector<BatchWrite>>> unprocessed;
  std::vector<ConsumedCapacity> capacity;
  std::vector<std::pair<std::string, std::vector<ItemCollectionMetrics>>> collection_metrics;
};

struct CreateTableRequest {
  TableDefinition definition;
  std::vector<Tag> tags;
};

struct GlobalIndexUpdate {
  std::optional<IndexDefinition> create;
  std::optional<std::string> remove;
  struct Update {
    std::string name;
    std::optional<Throughput> throughput;
    std::optional<OptionalThroughput> on_demand_throughput;
    std::optional<OptionalThroughput> warm_throughput;
  };
  std::optional<Update> update;
};

struct UpdateTableRequest {
  std::string table;
  std::vector<AttributeDefinition> attributes;
  std::vector<GlobalIndexUpdate> global_index_updates;
  std::optional<BillingMode> billing_mode;
  std::optional<Throughput> throughput;
  std::optional<OptionalThroughput> on_demand_throughput;
  std::optional<OptionalThroughput> warm_throughput;
  std::optional<TableClass> table_class;
  std::optional<ServerSideEncryption> encryption;
  struct Stream {
    bool enabled = false;
    std::optional<StreamView> view;
  };
  std::optional<Stream> stream;
  std::optional<bool> deletion_protection;
};

struct ListTablesRequest {
  std::optional<std::string> start;  // ExclusiveStartTableName
  int64_t limit = 100;
};

struct ListTablesResult {
  std::vector<std::string> names;
  std::optional<std::string> last;
};

struct TagResourceRequest {
  std::string arn;
  std::vector<Tag> tags;
};

struct UntagResourceRequest {
  std::string arn;
  std::vector<std::string> keys;
};

struct UpdateTimeToLiveRequest {
  std::string table;
  bool enabled = false;
  std::string attribute;
};

enum class TimeToLiveStatus { enabling, enabled, disabled };

struct TimeToLiveDescription {
  TimeToLiveStatus status = TimeToLiveStatus::disabled;
  std::optional<std::string> attribute;
};

}  // namespace tabella::store

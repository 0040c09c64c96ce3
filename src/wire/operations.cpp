#include "wire/operations.h"

#include <algorithm>
#include <array>

namespace tabella::wire {
namespace {

constexpr std::string_view kVersion = "_20120810.";

// The busiest first: they are looked for in this order.
constexpr auto kOperations = std::to_array<NamedOperation>({
    {"DynamoDB", "GetItem", get_item},
    {"DynamoDB", "PutItem", put_item},
    {"DynamoDB", "UpdateItem", update_item},
    {"DynamoDB", "Query", query},
    {"DynamoDB", "DeleteItem", delete_item},
    {"DynamoDB", "Scan", scan},
    {"DynamoDB", "BatchGetItem", batch_get_item, true},
    {"DynamoDB", "BatchWriteItem", batch_write_item},
    {"DynamoDB", "TransactWriteItems", transact_write_items},
    {"DynamoDB", "TransactGetItems", transact_get_items, true},
    {"DynamoDB", "ExecuteStatement", execute_statement},
    {"DynamoDB", "BatchExecuteStatement", batch_execute_statement, true},
    {"DynamoDB", "ExecuteTransaction", execute_transaction, true},
    {"DynamoDB", "CreateTable", create_table},
    {"DynamoDB", "DescribeTable", describe_table},
    {"DynamoDB", "UpdateTable", update_table},
    {"DynamoDB", "DeleteTable", delete_table},
    {"DynamoDB", "ListTables", list_tables},
    {"DynamoDB", "UpdateTimeToLive", update_time_to_live},
    {"DynamoDB", "DescribeTimeToLive", describe_time_to_live},
    {"DynamoDB", "TagResource", tag_resource},
    {"DynamoDB", "UntagResource", untag_resource},
    {"DynamoDB", "ListTagsOfResource", list_tags_of_resource},
    {"DynamoDB", "DescribeLimits", describe_limits},
    {"DynamoDB", "DescribeEndpoints", describe_endpoints},
    {"DynamoDBStreams", "GetRecords", get_records},
    {"DynamoDBStreams", "GetShardIterator", get_shard_iterator},
    {"DynamoDBStreams", "DescribeStream", describe_stream},
    {"DynamoDBStreams", "ListStreams", list_streams},
});

}  // namespace

std::span<const NamedOperation> all_operations() { return kOperations; }

const NamedOperation* find_operation(std::string_view target) {
  const auto version = target.find(kVersion);
  if (version == std::string_view::npos) return nullptr;
  const auto service = target.substr(0, version);
  const auto name = target.substr(version + kVersion.size());
  const auto at = std::ranges::find_if(kOperations,
                                       [&](const auto& o) { return o.name == name && o.service == service; });
  return at == kOperations.end() ? nullptr : &*at;
}

}  // namespace tabella::wire

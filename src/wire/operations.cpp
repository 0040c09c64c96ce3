#include "wire/operations.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace tabella::wire {
namespace {

using Named = std::pair<std::string_view, Operation>;

constexpr std::array<Named, 25> kOperations = {{
    {"GetItem", get_item},
    {"PutItem", put_item},
    {"UpdateItem", update_item},
    {"Query", query},
    {"DeleteItem", delete_item},
    {"Scan", scan},
    {"BatchGetItem", batch_get_item},
    {"BatchWriteItem", batch_write_item},
    {"TransactWriteItems", transact_write_items},
    {"TransactGetItems", transact_get_items},
    {"ExecuteStatement", execute_statement},
    {"BatchExecuteStatement", batch_execute_statement},
    {"ExecuteTransaction", execute_transaction},
    {"CreateTable", create_table},
    {"DescribeTable", describe_table},
    {"UpdateTable", update_table},
    {"DeleteTable", delete_table},
    {"ListTables", list_tables},
    {"UpdateTimeToLive", update_time_to_live},
    {"DescribeTimeToLive", describe_time_to_live},
    {"TagResource", tag_resource},
    {"UntagResource", untag_resource},
    {"ListTagsOfResource", list_tags_of_resource},
    {"DescribeLimits", describe_limits},
    {"DescribeEndpoints", describe_endpoints},
}};

constexpr std::array<Named, 4> kStreamOperations = {{
    {"GetRecords", get_records},
    {"GetShardIterator", get_shard_iterator},
    {"DescribeStream", describe_stream},
    {"ListStreams", list_streams},
}};

Operation find_in(std::span<const Named> operations, std::string_view name) {
  const auto at = std::ranges::find_if(operations, [&](const auto& entry) { return entry.first == name; });
  return at == operations.end() ? nullptr : at->second;
}

}  // namespace

Operation find_operation(std::string_view target) {
  constexpr std::string_view kTables = "DynamoDB_20120810.";
  constexpr std::string_view kStreams = "DynamoDBStreams_20120810.";
  if (target.starts_with(kTables)) return find_in(kOperations, target.substr(kTables.size()));
  if (target.starts_with(kStreams)) return find_in(kStreamOperations, target.substr(kStreams.size()));
  return nullptr;
}

}  // namespace tabella::wire

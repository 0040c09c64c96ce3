#include "wire/operations.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tabella::wire {
namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 18> kOperations = {{
    {"GetItem", get_item},
    {"PutItem", put_item},
    {"UpdateItem", update_item},
    {"Query", query},
    {"DeleteItem", delete_item},
    {"Scan", scan},
    {"BatchGetItem", batch_get_item},
    {"BatchWriteItem", batch_write_item},
    {"CreateTable", create_table},
    {"DescribeTable", describe_table},
    {"UpdateTable", update_table},
    {"DeleteTable", delete_table},
    {"ListTables", list_tables},
    {"TagResource", tag_resource},
    {"UntagResource", untag_resource},
    {"ListTagsOfResource", list_tags_of_resource},
    {"DescribeLimits", describe_limits},
    {"DescribeEndpoints", describe_endpoints},
}};

}  // namespace

Operation find_operation(std::string_view name) {
  const auto at = std::ranges::find_if(kOperations, [&](const auto& entry) { return entry.first == name; });
  return at == kOperations.end() ? nullptr : at->second;
}

}  // namespace tabella::wire

// The operations of the door: each reads its request, calls the Store and writes its answer, in a file of its
// own. operations.cpp maps DynamoDB's names to them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "net/budget.h"
#include "store/long_work.h"
#include "store/store.h"
#include "wire/error.h"
#include "wire/reader.h"

namespace tabella::wire {

struct OperationContext {
  store::Store& store;
  std::string_view host;  // as the client named us
  const store::LongWork& long_work;
  net::BudgetShare* memory = nullptr;                      // where large results are counted, if anywhere
  const std::set<std::string>* unlisted_tables = nullptr;  // what ListTables leaves out, if anything
};

// Appends the answer's JSON to `out`. Everything it needs of `body` it reads before it first waits: the next
// request on this thread is parsed in the same place.
using Operation = boost::asio::awaitable<Result<>> (*)(OperationContext context, JsonValue body,
                                                       std::string& out);

struct NamedOperation {
  std::string_view service;  // "DynamoDB" or "DynamoDBStreams"
  std::string_view name;
  Operation run;
  bool reads_many = false;  // as many large items as its request names
};

std::span<const NamedOperation> all_operations();
// By target, as in "DynamoDB_20120810.PutItem". Null if there is no such operation.
const NamedOperation* find_operation(std::string_view target);

#define TABELLA_OPERATION(NAME) \
  boost::asio::awaitable<Result<>> NAME(OperationContext context, JsonValue body, std::string& out)

TABELLA_OPERATION(put_item);
TABELLA_OPERATION(get_item);
TABELLA_OPERATION(update_item);
TABELLA_OPERATION(delete_item);
TABELLA_OPERATION(query);
TABELLA_OPERATION(scan);
TABELLA_OPERATION(batch_get_item);
TABELLA_OPERATION(batch_write_item);
TABELLA_OPERATION(create_table);
TABELLA_OPERATION(describe_table);
TABELLA_OPERATION(update_table);
TABELLA_OPERATION(delete_table);
TABELLA_OPERATION(list_tables);
TABELLA_OPERATION(transact_write_items);
TABELLA_OPERATION(transact_get_items);
TABELLA_OPERATION(execute_statement);
TABELLA_OPERATION(batch_execute_statement);
TABELLA_OPERATION(execute_transaction);
TABELLA_OPERATION(update_time_to_live);
TABELLA_OPERATION(describe_time_to_live);
TABELLA_OPERATION(list_streams);
TABELLA_OPERATION(describe_stream);
TABELLA_OPERATION(get_shard_iterator);
TABELLA_OPERATION(get_records);
TABELLA_OPERATION(tag_resource);
TABELLA_OPERATION(untag_resource);
TABELLA_OPERATION(list_tags_of_resource);
TABELLA_OPERATION(describe_limits);
TABELLA_OPERATION(describe_endpoints);

}  // namespace tabella::wire

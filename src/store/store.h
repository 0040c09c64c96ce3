// THE WAIST. Everything above speaks to a DynamoDB through this class and nothing else; engine/ and remote/
// implement it. One coroutine per operation.
//
// Thread-safe: call from any thread; a call resumes on the executor of the coroutine that made it. A write
// that returns a result is durable. A write is not cancellable: the caller may go away, the effect does not.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "store/error.h"
#include "store/requests.h"
#include "store/statements.h"
#include "store/streams.h"
#include "store/table.h"
#include "store/transactions.h"

namespace tabella::store {

template <class T>
using Async = boost::asio::awaitable<Result<T>>;

class Store {
 public:
  virtual ~Store() = default;

  virtual Async<TableDescription> create_table(CreateTableRequest request) = 0;
  virtual Async<TableDescription> describe_table(std::string name) = 0;
  virtual Async<TableDescription> update_table(UpdateTableRequest request) = 0;
  virtual Async<TableDescription> delete_table(std::string name) = 0;
  virtual Async<ListTablesResult> list_tables(ListTablesRequest request) = 0;

  virtual Async<WriteResult> put_item(PutItemRequest request) = 0;
  virtual Async<WriteResult> update_item(UpdateItemRequest request) = 0;
  virtual Async<WriteResult> delete_item(DeleteItemRequest request) = 0;
  virtual Async<GetItemResult> get_item(GetItemRequest request) = 0;
  virtual Async<Page> query(QueryRequest request) = 0;
  virtual Async<Page> scan(ScanRequest request) = 0;
  virtual Async<BatchGetItemResult> batch_get_item(BatchGetItemRequest request) = 0;
  virtual Async<BatchWriteItemResult> batch_write_item(BatchWriteItemRequest request) = 0;

  virtual Async<TransactWriteItemsResult> transact_write_items(TransactWriteItemsRequest request) = 0;
  virtual Async<TransactGetItemsResult> transact_get_items(TransactGetItemsRequest request) = 0;

  virtual Async<ExecuteStatementResult> execute_statement(ExecuteStatementRequest request) = 0;
  virtual Async<BatchExecuteStatementResult> batch_execute_statement(
      BatchExecuteStatementRequest request) = 0;
  virtual Async<ExecuteTransactionResult> execute_transaction(ExecuteTransactionRequest request) = 0;

  virtual Async<ListStreamsResult> list_streams(ListStreamsRequest request) = 0;
  virtual Async<StreamDescription> describe_stream(DescribeStreamRequest request) = 0;
  virtual Async<std::string> get_shard_iterator(GetShardIteratorRequest request) = 0;
  virtual Async<GetRecordsResult> get_records(GetRecordsRequest request) = 0;
  // Comes back when there may be something new for this iterator, and after `at_most` in any case. A store
  // that is told of commits comes back at once; one that is not, when it is time to look again.
  virtual boost::asio::awaitable<void> wait_for_records(std::string iterator,
                                                        std::chrono::milliseconds at_most) = 0;

  virtual Async<UpdateTimeToLiveRequest> update_time_to_live(UpdateTimeToLiveRequest request) = 0;
  virtual Async<TimeToLiveDescription> describe_time_to_live(std::string table) = 0;

  virtual Async<void> tag_resource(TagResourceRequest request) = 0;
  virtual Async<void> untag_resource(UntagResourceRequest request) = 0;
  virtual Async<std::vector<Tag>> list_tags_of_resource(std::string arn) = 0;
};

}  // namespace tabella::store

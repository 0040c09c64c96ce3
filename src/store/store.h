// THE WAIST. Everything above speaks to a DynamoDB through this class and nothing else; engine/ and remote/
// implement it. One coroutine per operation.
//
// Thread-safe: call from any thread; a call resumes on the executor of the coroutine that made it. A write
// that returns a result is durable. A write is not cancellable: the caller may go away, the effect does not.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "store/error.h"
#include "store/requests.h"
#include "store/table.h"

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

  virtual Async<void> tag_resource(TagResourceRequest request) = 0;
  virtual Async<void> untag_resource(UntagResourceRequest request) = 0;
  virtual Async<std::vector<Tag>> list_tags_of_resource(std::string arn) = 0;
};

}  // namespace tabella::store

// A Store over HTTP to any DynamoDB endpoint: AWS, ScyllaDB Alternator, DynamoDB Local, another Tabella.
//
// A call that fails is made again as AWS's SDKs do it (retry.h), but a write whose fate is unknown only where
// a second time does no harm (repeat.h). What is left over of a batch is asked for again. Every call has its
// time. A call that is cancelled ends at once, with an error or an exception; a write may have taken effect
// by then.
#pragma once

#include "remote/caller.h"
#include "store/store.h"

namespace tabella::remote {

struct RemoteOptions {
  CallerOptions calls;
  // How often a shard that was empty is looked at again. AWS allows five reads a second of each.
  std::chrono::milliseconds stream_poll{250};
};

class RemoteStore final : public store::Store {
 public:
  // Borrows the clock. Throws std::runtime_error with a sentence for the user if TLS cannot be set up.
  RemoteStore(RemoteOptions options, const Clock& clock);

  store::Async<store::TableDescription> create_table(store::CreateTableRequest request) override;
  store::Async<store::TableDescription> describe_table(std::string name) override;
  store::Async<store::TableDescription> update_table(store::UpdateTableRequest request) override;
  store::Async<store::TableDescription> delete_table(std::string name) override;
  store::Async<store::ListTablesResult> list_tables(store::ListTablesRequest request) override;

  store::Async<store::WriteResult> put_item(store::PutItemRequest request) override;
  store::Async<store::WriteResult> update_item(store::UpdateItemRequest request) override;
  store::Async<store::WriteResult> delete_item(store::DeleteItemRequest request) override;
  store::Async<store::GetItemResult> get_item(store::GetItemRequest request) override;
  store::Async<store::Page> query(store::QueryRequest request) override;
  store::Async<store::Page> scan(store::ScanRequest request) override;
  store::Async<store::BatchGetItemResult> batch_get_item(store::BatchGetItemRequest request) override;
  store::Async<store::BatchWriteItemResult> batch_write_item(store::BatchWriteItemRequest request) override;

  store::Async<store::TransactWriteItemsResult> transact_write_items(
      store::TransactWriteItemsRequest request) override;
  store::Async<store::TransactGetItemsResult> transact_get_items(
      store::TransactGetItemsRequest request) override;

  store::Async<store::ExecuteStatementResult> execute_statement(
      store::ExecuteStatementRequest request) override;
  store::Async<store::BatchExecuteStatementResult> batch_execute_statement(
      store::BatchExecuteStatementRequest request) override;
  store::Async<store::ExecuteTransactionResult> execute_transaction(
      store::ExecuteTransactionRequest request) override;

  store::Async<store::ListStreamsResult> list_streams(store::ListStreamsRequest request) override;
  store::Async<store::StreamDescription> describe_stream(store::DescribeStreamRequest request) override;
  store::Async<std::string> get_shard_iterator(store::GetShardIteratorRequest request) override;
  store::Async<store::GetRecordsResult> get_records(store::GetRecordsRequest request) override;
  boost::asio::awaitable<void> wait_for_records(std::string iterator,
                                                std::chrono::milliseconds at_most) override;

  store::Async<store::UpdateTimeToLiveRequest> update_time_to_live(
      store::UpdateTimeToLiveRequest request) override;
  store::Async<store::TimeToLiveDescription> describe_time_to_live(std::string table) override;

  store::Async<void> tag_resource(store::TagResourceRequest request) override;
  store::Async<void> untag_resource(store::UntagResourceRequest request) override;
  store::Async<std::vector<store::Tag>> list_tags_of_resource(std::string arn) override;

  // Whether the endpoint answers, and that soon.
  store::Async<void> ping(std::chrono::milliseconds within);

  void write_metrics(metrics::Exposition& out) const { caller_.write_metrics(out); }

 private:
  template <class Result>
  store::Async<Result> ask(Operation operation, std::string body, Repeat repeat,
                           std::optional<Deadline> deadline = std::nullopt);
  store::Async<void> tell(Operation operation, std::string body, Repeat repeat);
  template <class Request, class Result>
  store::Async<Result> finish(Operation operation, Request request, Repeat repeat);

  const std::chrono::milliseconds stream_poll_;
  Caller caller_;
};

}  // namespace tabella::remote

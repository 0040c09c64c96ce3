// A Store without tables, for testing what stands in front of one.
#pragma once

#include <stdexcept>

#include "store/store.h"

namespace tabella::test {

// Knows no tables; lists many, so that there is something long to send; fails at DeleteItem.
class EmptyStore : public store::Store {
  template <class T>
  static store::Async<T> nothing() {
    co_return store::fail(store::ErrorCode::resource_not_found, "Requested resource not found");
  }

 public:
  store::Async<store::TableDescription> create_table(store::CreateTableRequest) override {
    return nothing<store::TableDescription>();
  }
  store::Async<store::TableDescription> describe_table(std::string) override {
    return nothing<store::TableDescription>();
  }
  store::Async<store::TableDescription> update_table(store::UpdateTableRequest) override {
    return nothing<store::TableDescription>();
  }
  store::Async<store::TableDescription> delete_table(std::string) override {
    return nothing<store::TableDescription>();
  }
  store::Async<store::ListTablesResult> list_tables(store::ListTablesRequest) override {
    co_return store::ListTablesResult{.names = std::vector<std::string>(500, "a-table-name"), .last = {}};
  }
  store::Async<store::WriteResult> put_item(store::PutItemRequest) override {
    return nothing<store::WriteResult>();
  }
  store::Async<store::WriteResult> update_item(store::UpdateItemRequest) override {
    return nothing<store::WriteResult>();
  }
  store::Async<store::WriteResult> delete_item(store::DeleteItemRequest) override {
    throw std::runtime_error("a broken disk");
  }
  store::Async<store::GetItemResult> get_item(store::GetItemRequest) override {
    return nothing<store::GetItemResult>();
  }
  store::Async<store::Page> query(store::QueryRequest) override { return nothing<store::Page>(); }
  store::Async<store::Page> scan(store::ScanRequest) override { return nothing<store::Page>(); }
  store::Async<store::BatchGetItemResult> batch_get_item(store::BatchGetItemRequest) override {
    return nothing<store::BatchGetItemResult>();
  }
  store::Async<store::BatchWriteItemResult> batch_write_item(store::BatchWriteItemRequest) override {
    return nothing<store::BatchWriteItemResult>();
  }
  store::Async<store::TransactWriteItemsResult> transact_write_items(
      store::TransactWriteItemsRequest) override {
    return nothing<store::TransactWriteItemsResult>();
  }
  store::Async<store::TransactGetItemsResult> transact_get_items(store::TransactGetItemsRequest) override {
    return nothing<store::TransactGetItemsResult>();
  }
  store::Async<store::ExecuteStatementResult> execute_statement(store::ExecuteStatementRequest) override {
    return nothing<store::ExecuteStatementResult>();
  }
  store::Async<store::BatchExecuteStatementResult> batch_execute_statement(
      store::BatchExecuteStatementRequest) override {
    return nothing<store::BatchExecuteStatementResult>();
  }
  store::Async<store::ExecuteTransactionResult> execute_transaction(
      store::ExecuteTransactionRequest) override {
    return nothing<store::ExecuteTransactionResult>();
  }
  store::Async<store::ListStreamsResult> list_streams(store::ListStreamsRequest) override {
    return nothing<store::ListStreamsResult>();
  }
  store::Async<store::StreamDescription> describe_stream(store::DescribeStreamRequest) override {
    return nothing<store::StreamDescription>();
  }
  store::Async<std::string> get_shard_iterator(store::GetShardIteratorRequest) override {
    return nothing<std::string>();
  }
  store::Async<store::GetRecordsResult> get_records(store::GetRecordsRequest) override {
    return nothing<store::GetRecordsResult>();
  }
  boost::asio::awaitable<void> wait_for_records(std::string, std::chrono::milliseconds) override {
    co_return;
  }
  store::Async<store::UpdateTimeToLiveRequest> update_time_to_live(store::UpdateTimeToLiveRequest) override {
    return nothing<store::UpdateTimeToLiveRequest>();
  }
  store::Async<store::TimeToLiveDescription> describe_time_to_live(std::string) override {
    return nothing<store::TimeToLiveDescription>();
  }
  store::Async<void> tag_resource(store::TagResourceRequest) override { return nothing<void>(); }
  store::Async<void> untag_resource(store::UntagResourceRequest) override { return nothing<void>(); }
  store::Async<std::vector<store::Tag>> list_tags_of_resource(std::string) override {
    return nothing<std::vector<store::Tag>>();
  }
};

}  // namespace tabella::test

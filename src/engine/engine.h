// The embedded store: DynamoDB on RocksDB, in this process.
//
// Reads run on the calling thread; changes go to the writer. Each operation has a file of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/clock.h"
#include "engine/catalogue.h"
#include "engine/database.h"
#include "engine/reclaim.h"
#include "engine/scrub.h"
#include "engine/statement.h"
#include "engine/transaction.h"
#include "engine/write_item.h"
#include "engine/writer.h"
#include "expression/cache.h"
#include "store/long_work.h"
#include "store/store.h"

namespace tabella::engine {

class Engine final : public store::Store {
 public:
  struct Options {
    std::filesystem::path folder;
    Durability durability = Durability::sync;
    int max_open_files = -1;
    // Writes are refused while less is free on the disk; nothing: a tenth of it, 256 MB at most.
    std::optional<uint64_t> min_free;
    FileFaults faults;          // for tests
    store::LongWork long_work;  // for requests that would hold their thread up
  };

  // Opens or creates the store. Throws std::runtime_error with a sentence for the user.
  Engine(const Options& options, const Clock& clock);
  ~Engine() override;

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
  store::Async<store::TimeToLiveDescription> describe_time_to_live(std::string name) override;

  store::Async<void> tag_resource(store::TagResourceRequest request) override;
  store::Async<void> untag_resource(store::UntagResourceRequest request) override;
  store::Async<std::vector<store::Tag>> list_tags_of_resource(std::string arn) override;

  // Why the store does not take writes, or what is damaged in it; empty: all is well.
  std::string problem() const;
  void write_metrics(metrics::Exposition& out) const;

  // Finishes what was begun, makes it durable and lets go of the folder. No call may be under way or follow.
  void close();

 private:
  friend class Salvage;  // puts tables into a new store as they were

  void check_format();
  void recover();
  void load_catalogue();
  void load_streams();
  uint32_t take_id(WriteContext& context);
  void start_backfill(const TableSchema& table, const IndexSchema& index);
  void start_filling_expiry(const TableSchema& table);
  std::chrono::milliseconds run_housekeeping(WriteContext& context, bool busy);

  store::Async<store::WriteResult> write(WriteAction& action, const store::WriteOptions& options);
  store::Async<store::TransactWriteItemsResult> run(Transaction& transaction);
  // Runs `change` in the writer, once what is costly about its actions has been worked out beside it.
  store::Async<void> execute(std::span<WriteAction* const> actions, Writer::Mutation mutation);
  store::Async<void> change_tags(std::string arn, std::string not_found,
                                 std::function<store::Result<>(std::vector<store::Tag>&)> change);
  store::Result<store::GetItemResult> get_now(const store::GetItemRequest& request);
  store::Result<store::Page> query_now(const store::QueryRequest& request);
  store::Result<store::Page> scan_now(const store::ScanRequest& request);
  store::Result<store::BatchGetItemResult> batch_get_now(const store::BatchGetItemRequest& request);

  store::Result<store::TransactGetItemsResult> transact_get_now(
      const store::TransactGetItemsRequest& request);
  store::Result<store::ExecuteTransactionResult> read_transaction(
      const std::vector<PreparedStatement>& statements, const store::ExecuteTransactionRequest& request);
  store::Result<store::GetRecordsResult> get_records_now(const store::GetRecordsRequest& request);
  // Whether records of that time are gone.
  bool is_trimmed(TimePoint time) const;

  const Clock& clock_;
  const TimePoint opened_at_;
  const Elapsed opened_;
  const store::LongWork long_work_;
  Database database_;
  ItemCache items_;
  Catalogue catalogue_;
  Streams streams_;
  expression::Caches caches_;
  uint32_t next_id_ = 1;             // the writer's thread only, once open
  std::string tokens_forgotten_to_;  // likewise
  metrics::Counter expired_items_ = 0;
  std::atomic<int64_t> expiry_lag_ = 0;  // seconds
  metrics::Histogram record_ages_{metrics::latency_bounds()};
  Reclaim reclaim_;
  Scrub scrub_;
  Writer writer_;  // last: its thread uses all of the above
};

}  // namespace tabella::engine

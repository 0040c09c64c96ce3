// A Store in front of another one, at which things go wrong as the test says: answers and requests get lost,
// requests come late, or whoever uses it is dead from then on.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "store/store.h"
#include "support/run.h"

namespace tabella::test {

enum class Fault {
  none,
  lose_answer,   // done, and the answer is lost
  lose_request,  // not done, and nobody knows
  delay,         // likewise, but deliver_late() does it
  refuse,        // not done, as the error says
  conflict,      // not done: somebody else was at the same items
  die,           // not done, and neither is anything after it
};

// Thread-safe, if the test's function is.
class FaultyStore final : public store::Store {
 public:
  // A request: whether it writes, and how many of its kind there were before it.
  struct Call {
    bool writes = false;
    int number = 0;
  };
  using Decide = std::function<Fault(Call)>;

  explicit FaultyStore(store::Store& behind) : behind_(behind) {}

  // Asked before each request, on its thread; the test may do anything meanwhile.
  void decide(Decide function) {
    const std::scoped_lock lock(mutex_);
    decide_ = std::move(function);
    reads_ = writes_ = 0;
    dead_ = false;
  }
  int writes() const { return writes_; }

  // The transactions that were delayed, in their order.
  void deliver_late() {
    for (auto& request : std::exchange(late_, {}))
      static_cast<void>(run(behind_.transact_write_items(std::move(request))));
  }

  store::Async<store::WriteResult> put_item(store::PutItemRequest request) override {
    return write<store::WriteResult>([this](auto r) { return behind_.put_item(std::move(r)); },
                                     std::move(request));
  }
  store::Async<store::WriteResult> update_item(store::UpdateItemRequest request) override {
    return write<store::WriteResult>([this](auto r) { return behind_.update_item(std::move(r)); },
                                     std::move(request));
  }
  store::Async<store::WriteResult> delete_item(store::DeleteItemRequest request) override {
    return write<store::WriteResult>([this](auto r) { return behind_.delete_item(std::move(r)); },
                                     std::move(request));
  }
  store::Async<store::BatchWriteItemResult> batch_write_item(store::BatchWriteItemRequest request) override {
    return write<store::BatchWriteItemResult>(
        [this](auto r) { return behind_.batch_write_item(std::move(r)); }, std::move(request));
  }
  store::Async<store::TransactWriteItemsResult> transact_write_items(
      store::TransactWriteItemsRequest request) override {
    return write<store::TransactWriteItemsResult>(
        [this](auto r) { return behind_.transact_write_items(std::move(r)); }, std::move(request));
  }

  store::Async<store::GetItemResult> get_item(store::GetItemRequest request) override {
    return read<store::GetItemResult>([this](auto r) { return behind_.get_item(std::move(r)); },
                                      std::move(request));
  }
  store::Async<store::Page> query(store::QueryRequest request) override {
    return read<store::Page>([this](auto r) { return behind_.query(std::move(r)); }, std::move(request));
  }
  store::Async<store::Page> scan(store::ScanRequest request) override {
    return read<store::Page>([this](auto r) { return behind_.scan(std::move(r)); }, std::move(request));
  }
  store::Async<store::BatchGetItemResult> batch_get_item(store::BatchGetItemRequest request) override {
    return read<store::BatchGetItemResult>([this](auto r) { return behind_.batch_get_item(std::move(r)); },
                                           std::move(request));
  }
  store::Async<store::TransactGetItemsResult> transact_get_items(
      store::TransactGetItemsRequest request) override {
    return read<store::TransactGetItemsResult>(
        [this](auto r) { return behind_.transact_get_items(std::move(r)); }, std::move(request));
  }

  // What the systems do not use while they work is passed on.
  store::Async<store::TableDescription> create_table(store::CreateTableRequest request) override {
    return behind_.create_table(std::move(request));
  }
  store::Async<store::TableDescription> describe_table(std::string name) override {
    return behind_.describe_table(std::move(name));
  }
  store::Async<store::TableDescription> update_table(store::UpdateTableRequest request) override {
    return behind_.update_table(std::move(request));
  }
  store::Async<store::TableDescription> delete_table(std::string name) override {
    return behind_.delete_table(std::move(name));
  }
  store::Async<store::ListTablesResult> list_tables(store::ListTablesRequest request) override {
    return behind_.list_tables(std::move(request));
  }
  store::Async<store::ExecuteStatementResult> execute_statement(
      store::ExecuteStatementRequest request) override {
    return behind_.execute_statement(std::move(request));
  }
  store::Async<store::BatchExecuteStatementResult> batch_execute_statement(
      store::BatchExecuteStatementRequest request) override {
    return behind_.batch_execute_statement(std::move(request));
  }
  store::Async<store::ExecuteTransactionResult> execute_transaction(
      store::ExecuteTransactionRequest request) override {
    return behind_.execute_transaction(std::move(request));
  }
  store::Async<store::ListStreamsResult> list_streams(store::ListStreamsRequest request) override {
    return behind_.list_streams(std::move(request));
  }
  store::Async<store::StreamDescription> describe_stream(store::DescribeStreamRequest request) override {
    return behind_.describe_stream(std::move(request));
  }
  store::Async<std::string> get_shard_iterator(store::GetShardIteratorRequest request) override {
    return behind_.get_shard_iterator(std::move(request));
  }
  store::Async<store::GetRecordsResult> get_records(store::GetRecordsRequest request) override {
    return behind_.get_records(std::move(request));
  }
  boost::asio::awaitable<void> wait_for_records(std::string iterator,
                                                std::chrono::milliseconds at_most) override {
    return behind_.wait_for_records(std::move(iterator), at_most);
  }
  store::Async<store::UpdateTimeToLiveRequest> update_time_to_live(
      store::UpdateTimeToLiveRequest request) override {
    return behind_.update_time_to_live(std::move(request));
  }
  store::Async<store::TimeToLiveDescription> describe_time_to_live(std::string table) override {
    return behind_.describe_time_to_live(std::move(table));
  }
  store::Async<void> tag_resource(store::TagResourceRequest request) override {
    return behind_.tag_resource(std::move(request));
  }
  store::Async<void> untag_resource(store::UntagResourceRequest request) override {
    return behind_.untag_resource(std::move(request));
  }
  store::Async<std::vector<store::Tag>> list_tags_of_resource(std::string arn) override {
    return behind_.list_tags_of_resource(std::move(arn));
  }

 private:
  Fault ask(bool writes) {
    Decide function;
    Call call{.writes = writes};
    {
      const std::scoped_lock lock(mutex_);
      if (dead_) return Fault::die;
      call.number = writes ? writes_++ : reads_++;
      function = decide_;
    }
    const auto fault = function ? function(call) : Fault::none;
    const std::scoped_lock lock(mutex_);
    dead_ = dead_ || fault == Fault::die;
    return fault;
  }

  static std::unexpected<store::Error> failure(Fault fault) {
    using enum store::ErrorCode;
    store::Error error(fault == Fault::conflict ? transaction_conflict : unavailable,
                       "the test lets it go wrong");
    error.unsure = fault == Fault::lose_answer || fault == Fault::lose_request || fault == Fault::delay;
    return std::unexpected(std::move(error));
  }

  template <class T, class Send, class Request>
  store::Async<T> write(Send send, Request request) {
    const auto fault = ask(true);
    if (fault == Fault::none) co_return co_await send(std::move(request));
    if (fault == Fault::lose_answer) {
      const auto done = co_await send(std::move(request));
      // What is refused for what it is was surely not done, however its answer came.
      if (!done && done.error().code == store::ErrorCode::validation) co_return done;
    } else if constexpr (std::is_same_v<Request, store::TransactWriteItemsRequest>) {
      if (fault == Fault::delay) late_.push_back(std::move(request));
    }
    co_return failure(fault);
  }

  template <class T, class Send, class Request>
  store::Async<T> read(Send send, Request request) {
    const auto fault = ask(false);
    if (fault == Fault::none) co_return co_await send(std::move(request));
    auto error = failure(fault);
    error.error().unsure = false;
    co_return error;
  }

  store::Store& behind_;
  std::mutex mutex_;
  Decide decide_;  // guarded by mutex_, as are the following
  int reads_ = 0;
  int writes_ = 0;
  bool dead_ = false;
  std::vector<store::TransactWriteItemsRequest> late_;  // of one thread
};

}  // namespace tabella::test

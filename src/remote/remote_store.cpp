#include "remote/remote_store.h"

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "remote/request_json.h"
#include "remote/result_json.h"
#include "store/pause.h"

namespace tabella::remote {

using boost::asio::awaitable;
using store::Async;
using SteadyClock = std::chrono::steady_clock;

namespace {

// What one answer of a batch adds to those before it.
template <class Element>
void append_all(std::vector<Element>& to, std::vector<Element>& from) {
  std::ranges::move(from, std::back_inserter(to));
}

template <class Element>
void merge_tables(std::vector<std::pair<std::string, std::vector<Element>>>& to,
                  std::vector<std::pair<std::string, std::vector<Element>>>& from) {
  for (auto& [table, elements] : from) {
    const auto at = std::ranges::find(to, table, [](const auto& entry) { return entry.first; });
    if (at == to.end())
      to.emplace_back(table, std::move(elements));
    else
      append_all(at->second, elements);
  }
}

// As DynamoDB would have shown it, had it done all at once.
void merge_capacity(std::vector<store::ConsumedCapacity>& to, std::vector<store::ConsumedCapacity>& from) {
  for (auto& more : from) {
    const auto at = std::ranges::find(to, more.table, &store::ConsumedCapacity::table);
    if (at == to.end()) {
      to.push_back(std::move(more));
      continue;
    }
    at->table_units += more.table_units;
    for (const auto& [index, units] : more.global_indexes) at->global_indexes[index] += units;
    for (const auto& [index, units] : more.local_indexes) at->local_indexes[index] += units;
  }
}

void merge(store::BatchGetItemResult& to, store::BatchGetItemResult& from) {
  merge_tables(to.responses, from.responses);
  merge_capacity(to.capacity, from.capacity);
  to.unprocessed = std::move(from.unprocessed);
}

bool is_empty(const store::BatchGetTable& table) { return table.keys.empty(); }
bool is_empty(const std::pair<std::string, std::vector<store::BatchWrite>>& table) {
  return table.second.empty();
}

void merge(store::BatchWriteItemResult& to, store::BatchWriteItemResult& from) {
  merge_tables(to.collection_metrics, from.collection_metrics);
  merge_capacity(to.capacity, from.capacity);
  to.unprocessed = std::move(from.unprocessed);
}

}  // namespace

RemoteStore::RemoteStore(RemoteOptions options, const Clock& clock)
    : stream_poll_(options.stream_poll), caller_(std::move(options.calls), clock) {}

template <class Result>
Async<Result> RemoteStore::ask(Operation operation, std::string body, Repeat repeat,
                               std::optional<Deadline> deadline) {
  Result result;
  auto called = co_await caller_.call(
      operation, body, repeat,
      [&](JsonValue json) {
        result = {};  // an answer before this one may have been half of one
        return read(json, result);
      },
      deadline ? *deadline : caller_.usual_deadline());
  if (!called) co_return std::unexpected(std::move(called).error());
  co_return result;
}

Async<void> RemoteStore::tell(Operation operation, std::string body, Repeat repeat) {
  operation.answers_nothing = true;
  co_return co_await caller_.call(
      operation, body, repeat, [](JsonValue) { return true; }, caller_.usual_deadline());
}

Async<void> RemoteStore::ping(std::chrono::milliseconds within) {
  auto listed = co_await ask<store::ListTablesResult>(
      {"ListTables"}, to_json(store::ListTablesRequest{.start = {}, .limit = 1}), Repeat::read,
      SteadyClock::now() + within);
  if (listed) co_return store::Result<>{};
  // Not everybody may list tables: it answers all the same.
  using store::ErrorCode;
  if (listed.error().code == ErrorCode::access_denied) co_return store::Result<>{};
  co_return std::unexpected(std::move(listed).error());
}

// A batch is done when nothing of it is left. What cannot be done in its time is in the result, and so is
// what is left when a later part of it fails: the parts before it are done.
template <class Request, class Result>
Async<Result> RemoteStore::finish(Operation operation, Request request, Repeat repeat) {
  const auto deadline = caller_.usual_deadline();
  Result whole;
  for (int number = 1;; ++number) {
    auto part = co_await ask<Result>(operation, to_json(request), repeat, deadline);
    if (!part && number == 1) co_return std::unexpected(std::move(part).error());
    if (!part) {
      log::warning("{}: a part of it was left undone: {}", operation.name, part.error().message);
      whole.unprocessed = std::move(request.tables);
      co_return whole;
    }
    merge(whole, *part);
    std::erase_if(whole.unprocessed, [](const auto& table) { return is_empty(table); });
    const auto pause = caller_.retry().pause_before(number + 1);
    if (whole.unprocessed.empty() || SteadyClock::now() + pause >= deadline) co_return whole;
    request.tables = std::exchange(whole.unprocessed, {});
    co_await store::pause_for(pause);
  }
}

// A table that is there already was made by the first of two tries, or by somebody else: the error says that
// it is not sure.
Async<store::TableDescription> RemoteStore::create_table(store::CreateTableRequest request) {
  return ask<store::TableDescription>({"CreateTable"}, to_json(request), Repeat::guarded);
}
Async<store::TableDescription> RemoteStore::describe_table(std::string name) {
  return ask<store::TableDescription>({"DescribeTable"}, to_json("TableName", name), Repeat::read);
}
Async<store::TableDescription> RemoteStore::update_table(store::UpdateTableRequest request) {
  return ask<store::TableDescription>({"UpdateTable"}, to_json(request), Repeat::guarded);
}
Async<store::TableDescription> RemoteStore::delete_table(std::string name) {
  return ask<store::TableDescription>({"DeleteTable"}, to_json("TableName", name), Repeat::guarded);
}
Async<store::ListTablesResult> RemoteStore::list_tables(store::ListTablesRequest request) {
  return ask<store::ListTablesResult>({"ListTables"}, to_json(request), Repeat::read);
}

Async<store::WriteResult> RemoteStore::put_item(store::PutItemRequest request) {
  return ask<store::WriteResult>({"PutItem"}, to_json(request), repeat_of(request));
}
Async<store::WriteResult> RemoteStore::update_item(store::UpdateItemRequest request) {
  return ask<store::WriteResult>({"UpdateItem"}, to_json(request), repeat_of(request));
}
Async<store::WriteResult> RemoteStore::delete_item(store::DeleteItemRequest request) {
  return ask<store::WriteResult>({"DeleteItem"}, to_json(request), repeat_of(request));
}
Async<store::GetItemResult> RemoteStore::get_item(store::GetItemRequest request) {
  return ask<store::GetItemResult>({"GetItem"}, to_json(request), Repeat::read);
}
Async<store::Page> RemoteStore::query(store::QueryRequest request) {
  return ask<store::Page>({"Query"}, to_json(request), Repeat::read);
}
Async<store::Page> RemoteStore::scan(store::ScanRequest request) {
  return ask<store::Page>({"Scan"}, to_json(request), Repeat::read);
}
Async<store::BatchGetItemResult> RemoteStore::batch_get_item(store::BatchGetItemRequest request) {
  return finish<store::BatchGetItemRequest, store::BatchGetItemResult>({"BatchGetItem"}, std::move(request),
                                                                       Repeat::read);
}
Async<store::BatchWriteItemResult> RemoteStore::batch_write_item(store::BatchWriteItemRequest request) {
  return finish<store::BatchWriteItemRequest, store::BatchWriteItemResult>(
      {"BatchWriteItem"}, std::move(request), Repeat::harmless);
}

// With a token a transaction is made once, however often it is sent.
Async<store::TransactWriteItemsResult> RemoteStore::transact_write_items(
    store::TransactWriteItemsRequest request) {
  if (!request.token) request.token = make_uuid();
  return ask<store::TransactWriteItemsResult>({"TransactWriteItems"}, to_json(request), Repeat::harmless);
}
Async<store::TransactGetItemsResult> RemoteStore::transact_get_items(store::TransactGetItemsRequest request) {
  return ask<store::TransactGetItemsResult>({"TransactGetItems"}, to_json(request), Repeat::read);
}

Async<store::ExecuteStatementResult> RemoteStore::execute_statement(store::ExecuteStatementRequest request) {
  return ask<store::ExecuteStatementResult>({"ExecuteStatement"}, to_json(request), repeat_of(request));
}
Async<store::BatchExecuteStatementResult> RemoteStore::batch_execute_statement(
    store::BatchExecuteStatementRequest request) {
  return ask<store::BatchExecuteStatementResult>({"BatchExecuteStatement"}, to_json(request),
                                                 repeat_of(request));
}
Async<store::ExecuteTransactionResult> RemoteStore::execute_transaction(
    store::ExecuteTransactionRequest request) {
  if (!request.token) request.token = make_uuid();
  return ask<store::ExecuteTransactionResult>({"ExecuteTransaction"}, to_json(request), Repeat::harmless);
}

Async<store::ListStreamsResult> RemoteStore::list_streams(store::ListStreamsRequest request) {
  return ask<store::ListStreamsResult>({"ListStreams", true}, to_json(request), Repeat::read);
}
Async<store::StreamDescription> RemoteStore::describe_stream(store::DescribeStreamRequest request) {
  return ask<store::StreamDescription>({"DescribeStream", true}, to_json(request), Repeat::read);
}
Async<std::string> RemoteStore::get_shard_iterator(store::GetShardIteratorRequest request) {
  return ask<std::string>({"GetShardIterator", true}, to_json(request), Repeat::read);
}
Async<store::GetRecordsResult> RemoteStore::get_records(store::GetRecordsRequest request) {
  return ask<store::GetRecordsResult>({"GetRecords", true}, to_json(request), Repeat::read);
}
awaitable<void> RemoteStore::wait_for_records(std::string, std::chrono::milliseconds at_most) {
  return store::pause_for(std::min(at_most, stream_poll_));
}

Async<store::UpdateTimeToLiveRequest> RemoteStore::update_time_to_live(
    store::UpdateTimeToLiveRequest request) {
  return ask<store::UpdateTimeToLiveRequest>({"UpdateTimeToLive"}, to_json(request), Repeat::guarded);
}
Async<store::TimeToLiveDescription> RemoteStore::describe_time_to_live(std::string table) {
  return ask<store::TimeToLiveDescription>({"DescribeTimeToLive"}, to_json("TableName", table), Repeat::read);
}

Async<void> RemoteStore::tag_resource(store::TagResourceRequest request) {
  return tell({"TagResource"}, to_json(request), Repeat::harmless);
}
Async<void> RemoteStore::untag_resource(store::UntagResourceRequest request) {
  return tell({"UntagResource"}, to_json(request), Repeat::harmless);
}
// AWS gives ten at a time.
Async<std::vector<store::Tag>> RemoteStore::list_tags_of_resource(std::string arn) {
  const auto deadline = caller_.usual_deadline();
  std::vector<store::Tag> tags;
  std::optional<std::string> next;
  do {
    TABELLA_CO_ASSIGN(auto page, co_await ask<TagPage>({"ListTagsOfResource"}, tags_request(arn, next),
                                                       Repeat::read, deadline));
    append_all(tags, page.tags);
    next = std::move(page.next);
  } while (next);
  co_return tags;
}

}  // namespace tabella::remote

// DynamoDB's answers, read into a Store's results. What an answer leaves out stays as it was; false if it
// says something that cannot be understood.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "store/store.h"

namespace tabella::remote {

bool read(JsonValue json, store::WriteResult& result);
bool read(JsonValue json, store::GetItemResult& result);
bool read(JsonValue json, store::Page& result);
bool read(JsonValue json, store::BatchGetItemResult& result);
bool read(JsonValue json, store::BatchWriteItemResult& result);
bool read(JsonValue json, store::TransactWriteItemsResult& result);
bool read(JsonValue json, store::TransactGetItemsResult& result);
bool read(JsonValue json, store::ExecuteStatementResult& result);
bool read(JsonValue json, store::BatchExecuteStatementResult& result);
bool read(JsonValue json, store::ExecuteTransactionResult& result);
bool read(JsonValue json, store::TableDescription& result);
bool read(JsonValue json, store::ListTablesResult& result);
bool read(JsonValue json, store::UpdateTimeToLiveRequest& result);
bool read(JsonValue json, store::TimeToLiveDescription& result);
struct TagPage {
  std::vector<store::Tag> tags;
  std::optional<std::string> next;
};
bool read(JsonValue json, TagPage& result);
bool read(JsonValue json, store::ListStreamsResult& result);
bool read(JsonValue json, store::StreamDescription& result);
bool read(JsonValue json, store::GetRecordsResult& result);
bool read(JsonValue json, std::string& shard_iterator);

// An error's body. `type` is what __type says, "" if it says nothing.
struct ErrorBody {
  std::string type;
  std::string message;
  std::optional<item::Item> item;
  std::vector<store::CancellationReason> reasons;
};
bool read(JsonValue json, ErrorBody& result);

}  // namespace tabella::remote

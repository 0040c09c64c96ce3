// A Store's requests as DynamoDB's JSON.
#pragma once

#include <string>

#include "store/store.h"

namespace tabella::remote {

std::string to_json(const store::PutItemRequest& request);
std::string to_json(const store::UpdateItemRequest& request);
std::string to_json(const store::DeleteItemRequest& request);
std::string to_json(const store::GetItemRequest& request);
std::string to_json(const store::QueryRequest& request);
std::string to_json(const store::ScanRequest& request);
std::string to_json(const store::BatchGetItemRequest& request);
std::string to_json(const store::BatchWriteItemRequest& request);
std::string to_json(const store::TransactWriteItemsRequest& request);
std::string to_json(const store::TransactGetItemsRequest& request);
std::string to_json(const store::ExecuteStatementRequest& request);
std::string to_json(const store::BatchExecuteStatementRequest& request);
std::string to_json(const store::ExecuteTransactionRequest& request);
std::string to_json(const store::CreateTableRequest& request);
std::string to_json(const store::UpdateTableRequest& request);
std::string to_json(const store::ListTablesRequest& request);
std::string to_json(const store::UpdateTimeToLiveRequest& request);
std::string to_json(const store::TagResourceRequest& request);
std::string to_json(const store::UntagResourceRequest& request);
std::string to_json(const store::ListStreamsRequest& request);
std::string to_json(const store::DescribeStreamRequest& request);
std::string to_json(const store::GetShardIteratorRequest& request);
std::string to_json(const store::GetRecordsRequest& request);
std::string tags_request(std::string_view arn, const std::optional<std::string>& next_token);
// {"TableName": "…"} and the like.
std::string to_json(std::string_view member, std::string_view value);

}  // namespace tabella::remote

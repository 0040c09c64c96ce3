// The requests and results of PartiQL statements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/requests.h"

namespace tabella::store {

struct Statement {
  std::string text;
  std::optional<std::vector<std::string>> parameters;  // in the flat form
  std::optional<std::string> fault;                    // what is wrong with them, if something is
  bool consistent = false;
  bool return_old_on_failure = false;
};

struct ExecuteStatementRequest {
  Statement statement;
  std::optional<int64_t> limit;
  std::optional<std::string> next_token;
  CapacityDetail capacity = CapacityDetail::none;
};

struct ExecuteStatementResult {
  std::vector<Item> items;
  std::optional<std::string> next_token;
  std::optional<Item> last_key;
  std::optional<ConsumedCapacity> capacity;
};

struct BatchExecuteStatementRequest {
  std::vector<Statement> statements;
  CapacityDetail capacity = CapacityDetail::none;
};

// What became of one statement of a batch.
struct StatementResponse {
  std::string table;
  std::optional<Item> item;
  std::optional<Error> error;
};

struct BatchExecuteStatementResult {
  std::vector<StatementResponse> responses;
  std::vector<ConsumedCapacity> capacity;
};

struct ExecuteTransactionRequest {
  std::vector<Statement> statements;
  std::optional<std::string> token;  // ClientRequestToken
  CapacityDetail capacity = CapacityDetail::none;
};

struct ExecuteTransactionResult {
  std::vector<std::optional<Item>> responses;  // one per statement
  std::vector<ConsumedCapacity> capacity;
};

}  // namespace tabella::store

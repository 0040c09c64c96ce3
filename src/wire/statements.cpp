// ExecuteStatement, BatchExecuteStatement and ExecuteTransaction.
#include <fmt/format.h>

#include "protocol/error_names.h"
#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

constexpr size_t kMaxStatement = 8192;

// A value that breaks a rule is the statement's fault, not the request's: in a batch the others go on.
void read_statement_parameters(const Reader& reader, store::Statement& statement) {
  const auto list = reader.list("Parameters");
  if (!list) return;
  reader.count("Parameters", list, "[...]", 1, SIZE_MAX);
  statement.parameters.emplace();
  for (JsonElements e(*list); e.next();) {
    auto read = item::read_value(statement.parameters->emplace_back(), e.value());
    if (read) continue;
    if (read.error().kind == item::JsonFault::Kind::serialization)
      reader.problems().add(std::move(read).error());
    else if (!statement.fault)
      statement.fault = std::move(read).error().message;
  }
}

store::Statement read_statement(const Reader& reader) {
  store::Statement statement;
  const auto text = reader.string("Statement");
  reader.require("Statement", text);
  reader.length("Statement", text, 1, kMaxStatement);
  statement.text = text.value_or("");
  read_statement_parameters(reader, statement);
  statement.consistent = reader.boolean("ConsistentRead").value_or(false);
  statement.return_old_on_failure = read_return_on_failure(reader);
  return statement;
}

// Statements or TransactStatements.
std::vector<store::Statement> read_statements(const Reader& reader, std::string_view member,
                                              std::string_view type, size_t most) {
  std::vector<store::Statement> statements;
  const auto list = reader.list(member);
  reader.count(member, list, "[...]", 1, most);
  if (!reader.require(member, list)) return statements;
  size_t number = 0;
  for (JsonElements e(*list); e.next();) {
    ++number;
    if (!is_structure(e.value(), type, reader.problems())) continue;
    statements.push_back(read_statement(
        Reader(e.value(), reader.problems(), fmt::format("{}.{}.member", reader.path_of(member), number))));
  }
  return statements;
}

Result<store::ExecuteStatementRequest> read_execute_statement(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::ExecuteStatementRequest request{.statement = read_statement(reader)};
  request.limit = reader.integer("Limit");
  reader.at_least("Limit", request.limit, 1);
  request.next_token = reader.string("NextToken");
  reader.length("NextToken", request.next_token, 1, 32768);
  request.capacity = read_capacity_detail(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_execute_statement(std::string& out, const store::ExecuteStatementResult& result) {
  JsonObjectWriter json(out);
  {
    JsonArrayWriter items(json.key("Items"));
    for (const auto& item : result.items) item::append_item_json(items.element(), item);
  }
  if (result.next_token) json.string("NextToken", *result.next_token);
  if (result.last_key) item::append_item_json(json.key("LastEvaluatedKey"), *result.last_key);
  if (result.capacity) append_capacity(json.key("ConsumedCapacity"), *result.capacity);
}

Result<store::BatchExecuteStatementRequest> read_batch_execute_statement(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::BatchExecuteStatementRequest request;
  request.statements = read_statements(reader, "Statements", "BatchStatementRequest", 25);
  request.capacity = read_capacity_detail(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_response(std::string& out, const store::StatementResponse& response) {
  JsonObjectWriter json(out);
  if (response.error) {
    JsonObjectWriter error(json.key("Error"));
    error.string("Code", protocol::statement_error(response.error->code));
    error.string("Message", response.error->message);
    if (response.error->item) item::append_item_json(error.key("Item"), *response.error->item);
  }
  if (!response.table.empty()) json.string("TableName", response.table);
  if (response.item) item::append_item_json(json.key("Item"), *response.item);
}

void append_batch_execute_statement(std::string& out, const store::BatchExecuteStatementResult& result) {
  JsonObjectWriter json(out);
  {
    JsonArrayWriter responses(json.key("Responses"));
    for (const auto& response : result.responses) append_response(responses.element(), response);
  }
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
}

Result<store::ExecuteTransactionRequest> read_execute_transaction(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::ExecuteTransactionRequest request;
  request.token = read_token(reader);
  request.capacity = read_capacity_detail(reader);
  request.statements = read_statements(reader, "TransactStatements", "ParameterizedStatement", 100);
  TABELLA_TRY(problems.result());
  return request;
}

void append_execute_transaction(std::string& out, const store::ExecuteTransactionResult& result) {
  JsonObjectWriter json(out);
  append_responses(json.key("Responses"), result.responses);
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
}

}  // namespace

TABELLA_OPERATION(execute_statement) {
  return answer(read_execute_statement(body), context, &store::Store::execute_statement, out,
                append_execute_statement);
}

TABELLA_OPERATION(batch_execute_statement) {
  return answer(read_batch_execute_statement(body), context, &store::Store::batch_execute_statement, out,
                append_batch_execute_statement);
}

TABELLA_OPERATION(execute_transaction) {
  return answer(read_execute_transaction(body), context, &store::Store::execute_transaction, out,
                append_execute_transaction);
}

}  // namespace tabella::wire

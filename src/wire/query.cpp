#include "wire/operations.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Wire<store::QueryRequest> read(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::QueryRequest request;
  request.options = read_read_options(reader, "QueryFilter");
  // Query alone words this limit so.
  if (request.options.limit && *request.options.limit < 1)
    problems.first(
        "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value "
        "greater "
        "than or equal to 1");
  request.key_conditions = read_conditions(reader, "KeyConditions");
  request.key_condition = reader.string("KeyConditionExpression");
  request.forward = reader.boolean("ScanIndexForward").value_or(true);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(query) {
  auto request = read(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.query(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  append_page(out, *result);
  co_return Wire<>{};
}

}  // namespace tabella::wire

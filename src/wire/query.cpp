#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::QueryRequest> read_query(JsonValue body) {
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

TABELLA_OPERATION(query) { return answer(read_query(body), context, &store::Store::query, out, append_page); }

}  // namespace tabella::wire

#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::DeleteItemRequest> read_delete_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::DeleteItemRequest request;
  request.table = read_table_name(reader);
  auto key = reader.item("Key");
  if (reader.require("Key", key)) request.key = std::move(*key);
  request.options = read_write_options(reader);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(delete_item) {
  return answer(read_delete_item(body), context, &store::Store::delete_item, out, append_write_result);
}

}  // namespace tabella::wire

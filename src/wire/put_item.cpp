#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::PutItemRequest> read_put_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::PutItemRequest request;
  request.table = read_table_name(reader);
  auto item = reader.item("Item");
  if (reader.require("Item", item)) request.item = std::move(*item);
  request.options = read_write_options(reader);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(put_item) {
  return answer(read_put_item(body), context, &store::Store::put_item, out, append_write_result);
}

}  // namespace tabella::wire

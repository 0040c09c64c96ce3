#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::GetItemRequest> read_get_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::GetItemRequest request;
  request.table = read_table_name(reader);
  auto key = reader.item("Key");
  if (reader.require("Key", key)) request.key = std::move(*key);
  request.capacity = read_capacity_detail(reader);
  request.attributes_to_get = read_attributes_to_get(reader);
  request.consistent = reader.boolean("ConsistentRead").value_or(false);
  request.projection = reader.string("ProjectionExpression");
  request.attributes = read_expression_attributes(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_get_item(std::string& out, const store::GetItemResult& result) {
  JsonObjectWriter json(out);
  if (result.item) item::append_item_json(json.key("Item"), *result.item);
  if (result.capacity) append_capacity(json.key("ConsumedCapacity"), *result.capacity);
}

}  // namespace

TABELLA_OPERATION(get_item) {
  return answer(read_get_item(body), context, &store::Store::get_item, out, append_get_item);
}

}  // namespace tabella::wire

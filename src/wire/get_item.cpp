#include "wire/operations.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Wire<store::GetItemRequest> read(JsonValue body) {
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

}  // namespace

TABELLA_OPERATION(get_item) {
  auto request = read(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.get_item(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  item::JsonObjectWriter json(out);
  if (result->item) item::append_item_json(json.key("Item"), *result->item);
  if (result->capacity) append_capacity(json.key("ConsumedCapacity"), *result->capacity);
  co_return Wire<>{};
}

}  // namespace tabella::wire

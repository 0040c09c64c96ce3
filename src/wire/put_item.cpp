#include "wire/operations.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Wire<store::PutItemRequest> read(JsonValue body) {
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
  auto request = read(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.put_item(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  append_write_result(out, *result);
  co_return Wire<>{};
}

}  // namespace tabella::wire

#include "wire/operations.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Wire<store::DeleteItemRequest> read(JsonValue body) {
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
  auto request = read(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.delete_item(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  append_write_result(out, *result);
  co_return Wire<>{};
}

}  // namespace tabella::wire

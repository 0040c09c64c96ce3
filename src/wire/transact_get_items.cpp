#include "wire/answer.h"
#include "wire/parameters.h"
#include "wire/transact_items.h"

namespace tabella::wire {
namespace {

std::optional<store::TransactGet> read_get(const Reader& entry) {
  const auto json = entry.structure("Get", "Get");
  if (!entry.require("Get", json)) return std::nullopt;
  const Reader reader(*json, entry.problems(), entry.path_of("Get"));
  store::TransactGet get{.table = read_action_table(reader)};
  auto key = reader.item("Key");
  if (reader.require("Key", key)) get.key = std::move(*key);
  get.projection = reader.string("ProjectionExpression");
  get.attributes = read_expression_attributes(reader);
  return get;
}

Result<store::TransactGetItemsRequest> read_transact_get_items(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::TransactGetItemsRequest request;
  request.capacity = read_capacity_detail(reader);
  if (const auto items = read_transact_items(reader)) {
    size_t number = 0;
    for (JsonElements e(*items); e.next();) {
      ++number;
      if (!is_structure(e.value(), "TransactGetItem", problems)) continue;
      auto get = read_get(Reader(e.value(), problems, fmt::format("transactItems.{}.member", number)));
      if (get) request.gets.push_back(std::move(*get));
    }
  }
  TABELLA_TRY(problems.result());
  return request;
}

void append_transact_get_items(std::string& out, const store::TransactGetItemsResult& result) {
  JsonObjectWriter json(out);
  append_responses(json.key("Responses"), result.responses);
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
}

}  // namespace

TABELLA_OPERATION(transact_get_items) {
  return answer(read_transact_get_items(body), context, &store::Store::transact_get_items, out,
                append_transact_get_items);
}

}  // namespace tabella::wire

#include <fmt/format.h>

#include "protocol/shapes.h"
#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

constexpr size_t kMaxKeys = 100;
std::vector<item::Item> read_keys(const Reader& entry, std::string_view table) {
  std::vector<item::Item> keys;
  const auto list = entry.list("Keys");
  if (!entry.require("Keys", list)) return keys;
  const size_t count = size_of(*list);
  if (count == 0) entry.violation("Keys", "[]", "Member must have length greater than or equal to 1");
  // AWS words this one in its own way.
  if (count > kMaxKeys)
    entry.problems().first(fmt::format(
        "1 validation error detected: Value at 'RequestItems.{}.member.Keys' failed to satisfy constraint: "
        "Member must have length less than or equal to {}",
        table, kMaxKeys));
  for (JsonElements e(*list); e.next();) {
    if (e.value().kind() != JsonValue::Kind::object && e.value().kind() != JsonValue::Kind::array) {
      entry.problems().serialization(std::string(kNotAMap));
      continue;
    }
    auto key = item::read_item(e.value());
    if (key)
      keys.push_back(std::move(*key));
    else
      entry.problems().add(std::move(key).error());
  }
  return keys;
}

Result<store::BatchGetItemRequest> read_batch_get_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::BatchGetItemRequest request;
  const auto tables = reader.map("RequestItems", "KeysAndAttributes");
  if (reader.require("RequestItems", tables)) {
    if (size_of(*tables) == 0) problems.first("The requestItems parameter is required for BatchGetItem");
    for (JsonElements e(*tables); e.next();) {
      if (!is_structure(e.value(), "KeysAndAttributes", problems)) continue;
      check_table_name(e.key(), problems);
      const Reader entry(e.value(), problems, fmt::format("requestItems.{}.member", e.key()));
      store::BatchGetTable table{.table = std::string(e.key())};
      table.keys = read_keys(entry, e.key());
      table.attributes_to_get = read_attributes_to_get(entry);
      table.consistent = entry.boolean("ConsistentRead").value_or(false);
      table.projection = entry.string("ProjectionExpression");
      table.attributes = read_expression_attributes(entry);
      request.tables.push_back(std::move(table));
    }
  }
  request.capacity = read_capacity_detail(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_batch_get_item(std::string& out, const store::BatchGetItemResult& result) {
  JsonObjectWriter json(out);
  {
    JsonObjectWriter responses(json.key("Responses"));
    for (const auto& [table, items] : result.responses) {
      JsonArrayWriter array(responses.key(table));
      for (const auto& item : items) item::append_item_json(array.element(), item);
    }
  }
  protocol::append_batch(json.key("UnprocessedKeys"), result.unprocessed);
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
}

}  // namespace

TABELLA_OPERATION(batch_get_item) {
  return answer(read_batch_get_item(body), context, &store::Store::batch_get_item, out,
                append_batch_get_item);
}

}  // namespace tabella::wire

#include <fmt/format.h>

#include "protocol/shapes.h"
#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

constexpr size_t kMaxWrites = 25;

// PutRequest.Item or DeleteRequest.Key.
std::optional<item::Item> read_target(const Reader& entry, std::string_view request,
                                      std::string_view member) {
  const auto json = entry.structure(request, request);
  if (!json) return std::nullopt;
  const Reader inner(*json, entry.problems(), entry.path_of(request));
  auto item = inner.item(member);
  inner.require(member, item);
  return item ? std::move(item) : std::optional(item::Item());
}

std::vector<store::BatchWrite> read_writes(JsonValue list, std::string_view table, Problems& problems) {
  std::vector<store::BatchWrite> writes;
  size_t number = 0;
  for (JsonElements e(list); e.next();) {
    ++number;
    if (!is_structure(e.value(), "WriteRequest", problems)) continue;
    const Reader entry(e.value(), problems, fmt::format("requestItems.{}.member.{}.member", table, number));
    auto put = read_target(entry, "PutRequest", "Item");
    auto remove = read_target(entry, "DeleteRequest", "Key");
    if (put.has_value() == remove.has_value())
      problems.late(
          "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
          "supported "
          "datatypes");
    else
      writes.push_back({.put = put.has_value(), .item = put ? std::move(*put) : std::move(*remove)});
  }
  return writes;
}

void check_counts(const Reader& reader, JsonValue tables) {
  bool fits = true;
  std::string shown = "{";
  for (JsonElements e(tables); e.next();) {
    const size_t count = e.value().kind() == JsonValue::Kind::array ? size_of(e.value()) : 1;
    fits = fits && count >= 1 && count <= kMaxWrites;
    if (shown.size() > 1) shown.append(", ");
    shown.append(e.key()).append("=[");
    for (size_t i = 0; i < count; ++i) shown.append(i > 0 ? ", WriteRequest()" : "WriteRequest()");
    shown.push_back(']');
  }
  shown.push_back('}');
  if (!fits)
    reader.violation(
        "RequestItems", shown,
        "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member "
        "must have length greater than or equal to 1]");
}

Result<store::BatchWriteItemRequest> read_batch_write_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::BatchWriteItemRequest request;
  const auto tables =
      reader.map("RequestItems", "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>");
  if (reader.require("RequestItems", tables)) {
    if (size_of(*tables) == 0) problems.first("The requestItems parameter is required for BatchWriteItem");
    check_counts(reader, *tables);
    for (JsonElements e(*tables); e.next();) {
      check_table_name(e.key(), problems);
      if (e.value().kind() != JsonValue::Kind::array) {
        problems.serialization(e.value().kind() == JsonValue::Kind::object
                                   ? std::string("Start of structure or map found where not expected")
                                   : std::string(kNotAMap));
        continue;
      }
      request.tables.emplace_back(e.key(), read_writes(e.value(), e.key(), problems));
    }
  }
  request.capacity = read_capacity_detail(reader);
  request.collection_metrics = read_collection_metrics(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_batch_write_item(std::string& out, const store::BatchWriteItemResult& result) {
  JsonObjectWriter json(out);
  protocol::append_batch(json.key("UnprocessedItems"), result.unprocessed);
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
  append_table_metrics(json, result.collection_metrics);
}

}  // namespace

TABELLA_OPERATION(batch_write_item) {
  return answer(read_batch_write_item(body), context, &store::Store::batch_write_item, out,
                append_batch_write_item);
}

}  // namespace tabella::wire

#include "protocol/names.h"
#include "wire/answer.h"
#include "wire/parameters.h"
#include "wire/transact_items.h"

namespace tabella::wire {
namespace {

using store::TransactWrite;
using Kind = TransactWrite::Kind;

TransactWrite read_action(const Reader& reader, Kind kind) {
  TransactWrite write{.kind = kind};
  write.table = read_action_table(reader);
  const std::string_view target = kind == Kind::put ? "Item" : "Key";
  auto item = reader.item(target);
  if (reader.require(target, item)) write.item = std::move(*item);
  write.condition = reader.string("ConditionExpression");
  if (kind == Kind::check) reader.require("ConditionExpression", write.condition);
  if (kind == Kind::update) {
    write.update = reader.string("UpdateExpression");
    reader.require("UpdateExpression", write.update);
  }
  write.attributes = read_expression_attributes(reader);
  write.return_old_on_failure = read_return_on_failure(reader);
  return write;
}

std::optional<TransactWrite> read_write(const Reader& entry) {
  std::optional<TransactWrite> write;
  for (const auto& [name, kind] : protocol::kTransactWrites) {
    const auto json = entry.structure(name, name);
    if (!json) continue;
    if (write) entry.problems().first("TransactItems can only contain one of Check, Put, Update or Delete");
    write = read_action(Reader(*json, entry.problems(), entry.path_of(name)), kind);
  }
  if (!write)
    entry.problems().first(
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request");
  return write;
}

Result<store::TransactWriteItemsRequest> read_transact_write_items(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::TransactWriteItemsRequest request;
  request.token = read_token(reader);
  request.capacity = read_capacity_detail(reader);
  request.collection_metrics = read_collection_metrics(reader);
  if (const auto items = read_transact_items(reader)) {
    size_t number = 0;
    for (JsonElements e(*items); e.next();) {
      ++number;
      if (!is_structure(e.value(), "TransactWriteItem", problems)) continue;
      auto write = read_write(Reader(e.value(), problems, fmt::format("transactItems.{}.member", number)));
      if (write) request.writes.push_back(std::move(*write));
    }
  }
  TABELLA_TRY(problems.result());
  return request;
}

void append_transact_write_items(std::string& out, const store::TransactWriteItemsResult& result) {
  JsonObjectWriter json(out);
  if (!result.capacity.empty()) append_capacities(json, result.capacity);
  append_table_metrics(json, result.collection_metrics);
}

}  // namespace

TABELLA_OPERATION(transact_write_items) {
  return answer(read_transact_write_items(body), context, &store::Store::transact_write_items, out,
                append_transact_write_items);
}

}  // namespace tabella::wire

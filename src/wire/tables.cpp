// DescribeTable, DeleteTable and ListTables.
#include "wire/operations.h"
#include "wire/parameters.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

Wire<std::string> read_name(JsonValue body) {
  Problems problems;
  auto name = read_required_table_name(Reader(body, problems));
  TABELLA_TRY(problems.result());
  return name;
}

Wire<store::ListTablesRequest> read_list(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::ListTablesRequest request;
  request.start = reader.string("ExclusiveStartTableName");
  reader.pattern("ExclusiveStartTableName", request.start);
  reader.length("ExclusiveStartTableName", request.start, 3, 255);
  const auto limit = reader.integer("Limit");
  reader.at_least("Limit", limit, 1);
  reader.at_most("Limit", limit, 100);
  request.limit = limit.value_or(request.limit);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(describe_table) {
  auto name = read_name(body);
  if (!name) co_return std::unexpected(std::move(name).error());
  auto result = co_await context.store.describe_table(std::move(*name));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  item::JsonObjectWriter json(out);
  append_description(json.key("Table"), *result);
  co_return Wire<>{};
}

TABELLA_OPERATION(delete_table) {
  auto name = read_name(body);
  if (!name) co_return std::unexpected(std::move(name).error());
  auto result = co_await context.store.delete_table(std::move(*name));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  item::JsonObjectWriter json(out);
  append_description(json.key("TableDescription"), *result);
  co_return Wire<>{};
}

TABELLA_OPERATION(list_tables) {
  auto request = read_list(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.list_tables(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  item::JsonObjectWriter json(out);
  {
    item::JsonArrayWriter names(json.key("TableNames"));
    for (const auto& name : result->names) item::append_json_string(names.element(), name);
  }
  if (result->last) json.string("LastEvaluatedTableName", *result->last);
  co_return Wire<>{};
}

}  // namespace tabella::wire

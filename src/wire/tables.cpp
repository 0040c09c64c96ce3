// DescribeTable, DeleteTable and ListTables.
#include "wire/answer.h"
#include "wire/parameters.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

Result<store::ListTablesRequest> read_list_tables(JsonValue body) {
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

// Page by page, until there are enough of those that are listed.
store::Async<store::ListTablesResult> list_visible(OperationContext context,
                                                   store::ListTablesRequest request) {
  store::ListTablesResult listed;
  const auto wanted = static_cast<size_t>(request.limit);
  while (true) {
    request.limit = static_cast<int64_t>(wanted - listed.names.size());
    TABELLA_CO_ASSIGN(auto page, co_await context.store.list_tables(request));
    for (auto& name : page.names)
      if (!context.unlisted_tables || !context.unlisted_tables->contains(name))
        listed.names.push_back(std::move(name));
    listed.last = page.last;
    if (!page.last || listed.names.size() == wanted) co_return listed;
    request.start = page.last;
  }
}

void append_list_tables(std::string& out, const store::ListTablesResult& result) {
  JsonObjectWriter json(out);
  {
    JsonArrayWriter names(json.key("TableNames"));
    for (const auto& name : result.names) append_json_string(names.element(), name);
  }
  if (result.last) json.string("LastEvaluatedTableName", *result.last);
}

}  // namespace

TABELLA_OPERATION(describe_table) {
  return answer(read_table_only(body), context, &store::Store::describe_table, out,
                [](std::string& json_out, const store::TableDescription& table) {
                  JsonObjectWriter json(json_out);
                  append_description(json.key("Table"), table);
                });
}

TABELLA_OPERATION(delete_table) {
  return answer(read_table_only(body), context, &store::Store::delete_table, out, append_changed_table);
}

TABELLA_OPERATION(list_tables) {
  auto request = read_list_tables(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  const auto listed = co_await list_visible(context, std::move(*request));
  if (!listed) co_return std::unexpected(to_wire(listed.error()));
  append_list_tables(out, *listed);
  co_return Result<>{};
}

}  // namespace tabella::wire

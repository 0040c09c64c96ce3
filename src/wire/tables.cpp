// DescribeTable, DeleteTable and ListTables.
#include "wire/answer.h"
#include "wire/parameters.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

Result<store::ListTablesRequest> read_list(JsonValue body) {
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

void append_list(std::string& out, const store::ListTablesResult& result) {
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
  return answer(read_list(body), context, &store::Store::list_tables, out, append_list);
}

}  // namespace tabella::wire

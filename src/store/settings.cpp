#include "store/settings.h"

#include "store/batches.h"
#include "store/rows.h"

namespace tabella::store {

using item::Value;

namespace {

Value row_of(const std::string& kind, const std::string& name) {
  auto row = Value::map();
  row.set_member("kind", Value::string(kind));
  row.set_member("name", Value::string(name));
  return row;
}

}  // namespace

TablePlan Settings::plan(const std::string& table) {
  TableDefinition definition{.name = table};
  definition.billing_mode = BillingMode::pay_per_request;
  definition.attributes = {{"kind", item::Type::S}, {"name", item::Type::S}};
  definition.key_schema = {{"kind", KeyRole::hash}, {"name", KeyRole::range}};
  return {.definition = std::move(definition), .time_to_live = {}};
}

Async<std::map<std::string, std::string>> Settings::all(std::string kind) {
  QueryRequest request;
  request.options.table = table_;
  request.options.consistent = true;
  request.key_condition = "kind = :k";
  auto values = Value::map();
  values.set_member(":k", Value::string(kind));
  request.options.attributes.values = item::encode_item(values);
  auto rows = co_await query_all(store_, std::move(request));
  if (!rows) co_return error_of(rows);
  std::map<std::string, std::string> found;
  for (const auto& row : *rows) found[text_of(row, "name")] = text_of(row, "value");
  co_return found;
}

Async<void> Settings::put(std::string kind, std::string name, std::string value) {
  auto row = row_of(kind, name);
  row.set_member("value", Value::string(std::move(value)));
  auto put = co_await store_.put_item({.table = table_, .item = item::encode_item(row)});
  if (!put) co_return error_of(put);
  co_return Result<void>();
}

Async<bool> Settings::remove(std::string kind, std::string name) {
  DeleteItemRequest request{.table = table_, .key = item::encode_item(row_of(kind, name))};
  request.options.return_values = ReturnValues::all_old;
  auto removed = co_await store_.delete_item(std::move(request));
  if (!removed) co_return error_of(removed);
  co_return removed->attributes.has_value();
}

}  // namespace tabella::store

#include <fmt/format.h>

#include "base/ids.h"
#include "engine/engine.h"
#include "engine/stream_record.h"
#include "engine/table_checks.h"

namespace tabella::engine {

using store::CreateTableRequest;
using store::Result;
using store::TableDescription;

namespace {

Result<> check_new_table(const CreateTableRequest& request) {
  TABELLA_TRY(check_definition(request.definition));
  return check_tags(request.tags);
}

}  // namespace

store::Async<TableDescription> Engine::create_table(CreateTableRequest request) {
  TABELLA_CO_TRY(check_new_table(request));
  Result<TableDescription> result;
  const auto executed = co_await writer_.execute([&](WriteContext& context) {
    auto& definition = request.definition;
    if (context.table(definition.name)) {
      result = store::fail(store::ErrorCode::resource_in_use,
                           fmt::format("Table already exists: {}", definition.name));
      return;
    }
    auto table = std::make_shared<TableSchema>();
    table->id = take_id(context);
    table->uuid = make_uuid();
    table->created = clock_.now();
    table->tags = std::move(request.tags);
    table->partition = key_attribute(definition, definition.key_schema[0]);
    if (definition.key_schema.size() > 1) table->sort = key_attribute(definition, definition.key_schema[1]);
    if (definition.billing_mode == store::BillingMode::pay_per_request)
      table->on_demand_since = table->created;
    for (auto* indexes : {&definition.local_indexes, &definition.global_indexes}) {
      if (!*indexes) continue;
      for (auto& index : **indexes)
        table->indexes.push_back(
            make_index(take_id(context), indexes == &definition.local_indexes, definition, std::move(index)));
      indexes->reset();
    }
    table->definition = std::move(definition);
    if (const auto view = table->definition.stream) open_stream(context, *table, take_id(context), *view);
    context.put_table(table);

    // The table can be used at once; the answer says CREATING, which is what clients wait to see the end of.
    auto description = describe(*table);
    description.status = store::Status::creating;
    description.on_demand_since.reset();
    if (!table->definition.warm_throughput) description.definition.warm_throughput.reset();
    for (auto& index : description.global_indexes) {
      index.status = store::Status::creating;
      if (!table->index(index.definition.name)->definition.warm_throughput)
        index.definition.warm_throughput.reset();
    }
    result = std::move(description);
  });
  if (!executed) co_return std::unexpected(executed.error());
  co_return result;
}

}  // namespace tabella::engine

#include "engine/describe_table.h"

#include <fmt/format.h>

#include "engine/engine.h"

namespace tabella::engine {

std::unexpected<store::Error> table_not_found(std::string_view name) {
  return store::fail(store::ErrorCode::resource_not_found,
                     fmt::format("Requested resource not found: Table: {} not found", name));
}

store::Async<store::TableDescription> Engine::describe_table(std::string name) {
  const auto table = catalogue_.find(name);
  if (!table) co_return table_not_found(name);
  co_return describe(*table);
}

store::Async<store::ListTablesResult> Engine::list_tables(store::ListTablesRequest request) {
  auto [names, more] = catalogue_.names(request.start.value_or(""), static_cast<size_t>(request.limit));
  store::ListTablesResult result{.names = std::move(names), .last = {}};
  if (more) result.last = result.names.back();
  co_return result;
}

}  // namespace tabella::engine

#include <fmt/format.h>

#include "engine/describe_table.h"
#include "engine/engine.h"
#include "engine/keys.h"

namespace tabella::engine {

using store::Result;
using store::TableDescription;

namespace {

void remove_all(WriteContext& context, const std::string& prefix) {
  context.batch().remove_range(prefix, keys::end_of(prefix));
}

}  // namespace

store::Async<TableDescription> Engine::delete_table(std::string name) {
  Result<TableDescription> result;
  co_await writer_.execute([&](WriteContext& context) {
    const auto table = context.table(name);
    if (!table) {
      result = table_not_found(name);
      return;
    }
    if (table->definition.deletion_protection) {
      result = store::refuse(
          "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection "
          "first.");
      return;
    }
    remove_all(context, keys::items_of(table->id));
    context.batch().remove(keys::counters(table->id));
    for (const auto& index : table->indexes) {
      remove_all(context, keys::entries_of(index.id));
      context.batch().remove(keys::counters(index.id));
    }
    context.drop_table(*table);
    auto description = describe(*table);
    description.status = store::Status::deleting;
    description.brief = true;
    result = std::move(description);
  });
  co_return result;
}

}  // namespace tabella::engine

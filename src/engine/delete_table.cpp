#include <fmt/format.h>

#include "engine/change.h"
#include "engine/describe_table.h"
#include "engine/engine.h"
#include "engine/expiry.h"
#include "engine/keys.h"
#include "engine/stream_record.h"

namespace tabella::engine {

using store::Result;
using store::TableDescription;

store::Async<TableDescription> Engine::delete_table(std::string name) {
  Result<TableDescription> result;
  const auto executed = co_await writer_.execute([&](WriteContext& context) {
    const auto table = context.table(name);
    if (!table) {
      result = table_not_found(name);
      return;
    }
    if (table->definition.deletion_protection) {
      result = store::refuse(
          "Resource cannot be deleted as it is currently protected against deletion. Disable deletion "
          "protection "
          "first.");
      return;
    }
    context.remove_items(*table);
    context.batch().remove(keys::counters(table->id));
    for (const auto& index : table->indexes) remove_index_entries(context, index);
    if (table->expiry) remove_expiry_entries(context, *table->expiry);
    if (table->definition.stream) {
      auto last = *table;
      close_stream(context, last);
    }
    context.drop_table(*table);
    auto description = describe(*table);
    description.status = store::Status::deleting;
    description.brief = true;
    result = std::move(description);
  });
  if (!executed) co_return std::unexpected(executed.error());
  co_return result;
}

}  // namespace tabella::engine

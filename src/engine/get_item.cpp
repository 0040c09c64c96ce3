#include "engine/capacity.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/read_item.h"

namespace tabella::engine {

using store::GetItemRequest;
using store::GetItemResult;
using store::Result;

Result<GetItemResult> Engine::get_now(const GetItemRequest& request) {
  TABELLA_ASSIGN(const auto projection, prepare_projection(request.projection, request.attributes_to_get,
                                                           request.attributes, caches_));
  TABELLA_ASSIGN(const auto table, find_table(catalogue_, request.table));
  TABELLA_TRY(check_key(*table, request.key));
  if (projection) TABELLA_TRY(check_key_paths(*table, *projection));

  GetItemResult result;
  auto stored = items_.get(item_key(*table, request.key));
  result.capacity = account(table->name(), request.capacity);
  if (result.capacity)
    result.capacity->table_units =
        read_units(stored ? item::ItemView(*stored).size() : 0, request.consistent);
  if (!stored) return result;
  item::Item item(std::move(*stored));
  result.item = projection ? expression::project(item, *projection) : std::move(item);
  return result;
}

store::Async<GetItemResult> Engine::get_item(GetItemRequest request) { co_return get_now(request); }

}  // namespace tabella::engine

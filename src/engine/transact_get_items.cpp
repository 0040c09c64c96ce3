#include "engine/capacity.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/read_item.h"
#include "engine/transaction.h"

namespace tabella::engine {

using store::Result;
using store::TransactGetItemsRequest;
using store::TransactGetItemsResult;

namespace {

struct PreparedGet {
  SchemaPtr table;
  std::optional<expression::Projection> projection;
};

}  // namespace

Result<TransactGetItemsResult> Engine::transact_get_now(const TransactGetItemsRequest& request) {
  std::vector<PreparedGet> gets;
  for (const auto& get : request.gets) {
    TABELLA_ASSIGN(auto projection,
                   prepare_projection(get.projection, std::nullopt, get.attributes, caches_));
    gets.push_back({.table = {}, .projection = std::move(projection)});
  }
  for (size_t i = 0; i < gets.size(); ++i) {
    TABELLA_ASSIGN(gets[i].table, find_table(catalogue_, request.gets[i].table));
  }
  std::vector<std::string> keys;
  for (size_t i = 0; i < gets.size(); ++i) {
    if (auto checked = check_key(*gets[i].table, request.gets[i].key); !checked) {
      std::vector<store::CancellationReason> reasons(gets.size());
      reasons[i] = {.code = "ValidationError", .message = std::move(checked.error().message)};
      return cancel(std::move(reasons));
    }
    if (gets[i].projection) TABELLA_TRY(check_key_paths(*gets[i].table, *gets[i].projection));
    keys.push_back(item_key(*gets[i].table, request.gets[i].key));
  }
  TABELLA_TRY(check_no_duplicates(keys));

  TransactGetItemsResult result;
  Accounts accounts(store::CapacityKind::read);
  auto items = database_.get_all(keys);
  TABELLA_TRY(check_response_size(items));
  for (size_t i = 0; i < gets.size(); ++i) {
    const size_t size = items[i] ? item::ItemView(*items[i]).size() : 0;
    accounts.of(gets[i].table->name(), request.capacity).table_units += 2 * read_units(size, true);
    auto& response = result.responses.emplace_back();
    if (!items[i]) continue;
    item::Item item(std::move(*items[i]));
    if (gets[i].projection) item = expression::project(item, *gets[i].projection);
    if (item.count() > 0) response = std::move(item);
  }
  if (request.capacity != store::CapacityDetail::none) result.capacity = std::move(accounts.all);
  return result;
}

store::Async<TransactGetItemsResult> Engine::transact_get_items(TransactGetItemsRequest request) {
  co_return transact_get_now(request);
}

}  // namespace tabella::engine

#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/read_item.h"
#include "engine/transaction.h"

namespace tabella::engine {

using store::Result;
using store::TransactGetItemsRequest;
using store::TransactGetItemsResult;

Result<TransactGetItemsResult> Engine::transact_get_now(const TransactGetItemsRequest& request) {
  const auto& gets = request.gets;
  std::vector<std::optional<expression::Projection>> projections;
  for (const auto& get : gets) {
    TABELLA_ASSIGN(auto projection,
                   prepare_projection(get.projection, std::nullopt, get.attributes, caches_));
    projections.push_back(std::move(projection));
  }
  std::vector<TransactRead> reads(gets.size());
  for (size_t i = 0; i < gets.size(); ++i) {
    TABELLA_ASSIGN(reads[i].table, find_table(catalogue_, gets[i].table));
  }
  for (size_t i = 0; i < gets.size(); ++i) {
    if (auto checked = check_key(*reads[i].table, gets[i].key); !checked) {
      std::vector<store::CancellationReason> reasons(gets.size());
      reasons[i] = {.code = "ValidationError", .message = std::move(checked.error().message)};
      return cancel(std::move(reasons));
    }
    if (projections[i]) TABELLA_TRY(check_key_paths(*reads[i].table, *projections[i]));
    reads[i].key = item_key(*reads[i].table, gets[i].key);
  }
  TransactGetItemsResult result;
  Accounts accounts(store::CapacityKind::read);
  TABELLA_ASSIGN(result.responses, read_at_once(database_, reads, accounts, request.capacity));
  for (size_t i = 0; i < gets.size(); ++i) {
    auto& item = result.responses[i];
    if (item && projections[i]) item = expression::project(*item, *projections[i]);
    if (item && item->count() == 0) item.reset();
  }
  if (request.capacity != store::CapacityDetail::none) result.capacity = std::move(accounts.all);
  return result;
}

store::Async<TransactGetItemsResult> Engine::transact_get_items(TransactGetItemsRequest request) {
  // Each item may be large.
  constexpr size_t kFew = 8;
  if (request.gets.size() <= kFew) co_return transact_get_now(request);
  co_return co_await long_work_.run([&] { return transact_get_now(request); });
}

}  // namespace tabella::engine

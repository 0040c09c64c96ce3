#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/write_item.h"

namespace tabella::engine {

using store::DeleteItemRequest;
using store::Result;

namespace {

Result<WriteAction> prepare_delete(DeleteItemRequest& request, expression::Caches& caches,
                                   const Catalogue& catalogue) {
  const auto& options = request.options;
  TABELLA_TRY(check_parameters({{"ConditionExpression", options.condition.has_value()}},
                               {{"Expected", options.expected.has_value()}}, options.attributes));
  WriteAction action{.kind = WriteAction::Kind::remove};
  TABELLA_TRY(prepare_options(action, options, std::nullopt, caches));
  TABELLA_TRY(check_return_values(options.return_values));
  TABELLA_ASSIGN(action.table, find_table(catalogue, request.table));
  TABELLA_TRY(check_key(*action.table, request.key));
  action.key = item_key(*action.table, request.key);
  action.item = std::move(request.key);
  return action;
}

}  // namespace

store::Async<store::WriteResult> Engine::delete_item(DeleteItemRequest request) {
  TABELLA_CO_ASSIGN(auto action, prepare_delete(request, caches_, catalogue_));
  co_return co_await write(action, request.options);
}

}  // namespace tabella::engine

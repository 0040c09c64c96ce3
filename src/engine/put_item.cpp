#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/write_item.h"

namespace tabella::engine {

using store::PutItemRequest;
using store::Result;

namespace {

Result<WriteAction> prepare_put(PutItemRequest& request, expression::Caches& caches,
                                const Catalogue& catalogue) {
  const auto& options = request.options;
  TABELLA_TRY(check_parameters({{"ConditionExpression", options.condition.has_value()}},
                               {{"Expected", options.expected.has_value()}}, options.attributes));
  TABELLA_TRY(check_return_values(options.return_values));
  TABELLA_TRY(check_item_size(request.item));
  WriteAction action{.kind = WriteAction::Kind::put};
  TABELLA_TRY(prepare_options(action, options, std::nullopt, caches));
  TABELLA_ASSIGN(action.table, find_table(catalogue, request.table));
  TABELLA_TRY(check_item(*action.table, request.item));
  action.key = item_key(*action.table, request.item);
  action.item = std::move(request.item);
  return action;
}

}  // namespace

store::Async<store::WriteResult> Engine::put_item(PutItemRequest request) {
  TABELLA_CO_ASSIGN(auto action, prepare_put(request, caches_, catalogue_));
  co_return co_await write(action, request.options);
}

}  // namespace tabella::engine

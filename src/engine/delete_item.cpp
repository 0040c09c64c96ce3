#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/write_item.h"

namespace tabella::engine {

using store::DeleteItemRequest;
using store::Result;

namespace {

Result<PreparedWrite> prepare_delete(const DeleteItemRequest& request, expression::Caches& caches,
                                     const Catalogue& catalogue) {
  const auto& options = request.options;
  TABELLA_TRY(check_parameters({{"ConditionExpression", options.condition.has_value()}},
                               {{"Expected", options.expected.has_value()}}, options.attributes));
  TABELLA_ASSIGN(auto write, prepare_expressions(options, std::nullopt, caches));
  TABELLA_TRY(check_return_values(options.return_values));
  TABELLA_ASSIGN(write.table, find_table(catalogue, request.table));
  TABELLA_TRY(check_key(*write.table, request.key));
  write.key = item_key(*write.table, request.key);
  return write;
}

}  // namespace

store::Async<store::WriteResult> Engine::delete_item(DeleteItemRequest request) {
  auto write = prepare_delete(request, caches_, catalogue_);
  if (!write) co_return std::unexpected(std::move(write).error());
  Result<store::WriteResult> result;
  co_await writer_.execute([&](WriteContext& context) {
    result = write_item(context, *write, request.options,
                        [](const TableSchema&, const item::Item*) { return std::optional<item::Item>(); });
  });
  co_return result;
}

}  // namespace tabella::engine

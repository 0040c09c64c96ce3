#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/write_item.h"

namespace tabella::engine {

using store::PutItemRequest;
using store::Result;

namespace {

Result<PreparedWrite> prepare_put(const PutItemRequest& request, expression::Caches& caches,
                                  const Catalogue& catalogue) {
  const auto& options = request.options;
  TABELLA_TRY(check_parameters({{"ConditionExpression", options.condition.has_value()}},
                               {{"Expected", options.expected.has_value()}}, options.attributes));
  TABELLA_TRY(check_return_values(options.return_values));
  if (request.item.size() > kMaxItemSize)
    return store::refuse("Item size has exceeded the maximum allowed size");
  TABELLA_ASSIGN(auto write, prepare_expressions(options, std::nullopt, caches));
  TABELLA_ASSIGN(write.table, find_table(catalogue, request.table));
  TABELLA_TRY(check_item(*write.table, request.item));
  write.key = item_key(*write.table, request.item);
  return write;
}

}  // namespace

store::Async<store::WriteResult> Engine::put_item(PutItemRequest request) {
  auto write = prepare_put(request, caches_, catalogue_);
  if (!write) co_return std::unexpected(std::move(write).error());
  Result<store::WriteResult> result;
  co_await writer_.execute([&](WriteContext& context) {
    result = write_item(context, *write, request.options, [&](const TableSchema&, const item::Item*) {
      return std::optional(std::move(request.item));
    });
  });
  co_return result;
}

}  // namespace tabella::engine

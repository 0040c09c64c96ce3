#include <algorithm>
#include <unordered_set>

#include "engine/capacity.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/read_item.h"

namespace tabella::engine {

using store::BatchGetItemRequest;
using store::BatchGetItemResult;
using store::BatchGetTable;
using store::refuse;
using store::Result;

namespace {

constexpr size_t kMaxKeys = 100;
constexpr size_t kMaxBatchResponse = 16u << 20;

struct PreparedGet {
  const BatchGetTable* request;
  std::optional<expression::Projection> projection;
  SchemaPtr table;
};

// AWS looks at the request as a whole: one table's expression does not go with another's AttributesToGet.
Result<> check_mixture(const BatchGetItemRequest& request) {
  const bool projections =
      std::ranges::any_of(request.tables, [](const BatchGetTable& t) { return t.projection.has_value(); });
  const bool legacy = std::ranges::any_of(
      request.tables, [](const BatchGetTable& t) { return t.attributes_to_get.has_value(); });
  return check_parameters({{"ProjectionExpression", projections}}, {{"AttributesToGet", legacy}}, {});
}

Result<std::vector<PreparedGet>> prepare_gets(const BatchGetItemRequest& request, expression::Caches& caches,
                                              const Catalogue& catalogue) {
  TABELLA_TRY(check_mixture(request));
  std::vector<PreparedGet> gets;
  size_t keys = 0;
  for (const auto& table : request.tables) {
    PreparedGet get{.request = &table, .projection = {}, .table = {}};
    TABELLA_ASSIGN(get.projection,
                   prepare_projection(table.projection, table.attributes_to_get, table.attributes, caches));
    std::unordered_set<std::string, KeyedHash> seen;
    for (const auto& key : table.keys) {
      std::string same;
      item::append_canonical(same, key);
      if (!seen.insert(std::move(same)).second)
        return refuse("Provided list of item keys contains duplicates");
      if (++keys > kMaxKeys) return refuse("Too many items requested for the BatchGetItem call");
    }
    gets.push_back(std::move(get));
  }
  for (auto& get : gets) {
    TABELLA_ASSIGN(get.table, find_table(catalogue, get.request->table));
    for (const auto& key : get.request->keys) TABELLA_TRY(check_key(*get.table, key));
    if (get.projection) TABELLA_TRY(check_key_paths(*get.table, *get.projection));
  }
  return gets;
}

}  // namespace

Result<BatchGetItemResult> Engine::batch_get_now(const BatchGetItemRequest& request) {
  TABELLA_ASSIGN(const auto gets, prepare_gets(request, caches_, catalogue_));
  BatchGetItemResult result;
  size_t size = 0;
  for (const auto& get : gets) {
    auto& [name, items] = result.responses.emplace_back(get.request->table, std::vector<item::Item>());
    auto capacity = account(get.table->name(), request.capacity);
    for (size_t i = 0; i < get.request->keys.size(); ++i) {
      if (size > kMaxBatchResponse) {
        BatchGetTable rest = *get.request;
        rest.keys.erase(rest.keys.begin(), rest.keys.begin() + static_cast<ptrdiff_t>(i));
        result.unprocessed.push_back(std::move(rest));
        break;
      }
      auto stored = items_.get(item_key(*get.table, get.request->keys[i]));
      const size_t item_size = stored ? item::ItemView(*stored).size() : 0;
      if (capacity) capacity->table_units += read_units(item_size, get.request->consistent);
      if (!stored) continue;
      size += item_size;
      item::Item item(std::move(*stored));
      items.push_back(get.projection ? expression::project(item, *get.projection) : std::move(item));
    }
    if (capacity) result.capacity.push_back(std::move(*capacity));
  }
  return result;
}

store::Async<BatchGetItemResult> Engine::batch_get_item(BatchGetItemRequest request) {
  // Each item may be large.
  constexpr size_t kFew = 8;
  size_t keys = 0;
  for (const auto& table : request.tables) keys += table.keys.size();
  if (keys <= kFew) co_return batch_get_now(request);
  co_return co_await long_work_.run([&] { return batch_get_now(request); });
}

}  // namespace tabella::engine

#include "manhunt/rates.h"

#include <fmt/format.h>

#include "manhunt/model.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::manhunt {

using store::Async;

namespace {

constexpr std::chrono::seconds kKept = std::chrono::days{7};

}  // namespace

std::string rate_partition(std::string_view name) { return fmt::format("rate#{}", name); }

store::Item rate_key(const RateWindow& window) {
  return store::Row()
      .set(kPartition, rate_partition(window.name))
      .set(kSort, fmt::format("{:020}", window.number));
}

int64_t rate_expires(const RateWindow& window) {
  return (window.number + 2) * window.length.count() / 1000 + kKept.count();
}

Async<std::optional<int64_t>> count_once(store::Store& store, std::string table, RateWindow window,
                                         std::optional<int64_t> most) {
  store::Update update(table, rate_key(window));
  update.set("entityType", "rate").set("name", window.name).set(kExpires, rate_expires(window));
  update.add("count", 1).returning(store::ReturnValues::all_new);
  if (most) update.when(store::absent("count") || store::less("count", *most));
  const auto counted = co_await store.update_item(std::move(update));
  if (counted) co_return store::number_of(*counted->attributes, "count");
  if (store::failed_its_condition(counted.error())) co_return std::nullopt;
  co_return store::error_of(counted);
}

}  // namespace tabella::manhunt

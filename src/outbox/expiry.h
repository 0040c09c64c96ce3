// When rows go by themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "item/value.h"
#include "store/conditional.h"
#include "store/rows.h"
#include "store/store.h"

namespace tabella::outbox {

// Sets the second at which each of the rows goes; nothing: they stay. What is gone already stays gone.
inline store::Async<void> set_expiry(store::Store& store, std::string table, std::vector<item::Item> keys,
                                     std::string attribute, std::optional<int64_t> at) {
  for (const auto& key : keys) {
    item::Attributes names(key);
    names.next();
    auto update = store::Update(table, key).when(store::exists(names.name()));
    at ? update.set(attribute, *at) : update.remove(attribute);
    TABELLA_CO_TRY(store::was_made(co_await store.update_item(std::move(update))));
  }
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

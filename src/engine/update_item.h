// What an update may touch, and what it makes of an item.
#pragma once

#include <optional>

#include "engine/schema.h"
#include "engine/write_item.h"

namespace tabella::engine {

// Checks an update that the table's keys and indexes have a say in, before any item is seen.
store::Result<> check_update(const TableSchema& table, const expression::Update& update);

// The item after the update; nothing if there was none and none comes into being.
store::Result<std::optional<item::Item>> updated(const TableSchema& table, const WriteAction& action,
                                                 const item::Item* old);

}  // namespace tabella::engine

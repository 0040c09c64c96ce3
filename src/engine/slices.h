// Work over all items of a table, a slice at a time, so that writes do not wait for it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/keys.h"
#include "engine/write_context.h"
#include "item/value.h"

namespace tabella::engine {

// Gives the next slice of a table's items to `each`, from `position` (empty: the beginning), which it moves
// on. Whether that was the last.
inline bool walk_slice(WriteContext& context, uint32_t table_id, std::string& position,
                       const std::function<void(std::string_view key, item::ItemView item)>& each) {
  constexpr size_t kItems = 128;
  constexpr size_t kBytes = 128u << 10;
  const auto items = keys::items_of(table_id);
  context.restore_on_undo(position);
  if (position.empty()) position = items;
  auto cursor = context.database().range(position, keys::end_of(items), Database::Direction::forward, false);
  size_t seen = 0;
  size_t bytes = 0;
  for (; cursor.valid() && seen < kItems && bytes < kBytes; cursor.next(), ++seen) {
    position = std::string(cursor.key()) + '\0';
    bytes += cursor.value().size();
    each(cursor.key(), item::ItemView(cursor.value()));
  }
  return !cursor.valid();
}

}  // namespace tabella::engine

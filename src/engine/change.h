// The one place where an item changes: the item itself, its index entries and its counters, in one batch.
#pragma once

#include <optional>
#include <string>

#include "engine/schema.h"
#include "engine/writer.h"
#include "item/value.h"
#include "store/requests.h"

namespace tabella::engine {

struct ItemChange {
  std::string key;
  std::optional<item::Item> old;
  std::optional<item::Item> now;  // nothing: the item is deleted
};

// Writes the change; charges it to `capacity` if there is one.
void write_change(WriteContext& context, const TableSchema& table, const ItemChange& change,
                  store::ConsumedCapacity* capacity);

// Everything that an index held, when it goes.
void remove_index_entries(WriteContext& context, uint32_t index_id);

// The size of the item collection that `item` is in, if the table has local indexes.
std::optional<store::ItemCollectionMetrics> collection_metrics(const Database& database,
                                                               const TableSchema& table, item::ItemView item);

}  // namespace tabella::engine

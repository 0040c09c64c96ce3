// The one place where an item changes: the item itself, its index and expiry entries, its stream record and
// its counters, in one batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/schema.h"
#include "engine/write_context.h"
#include "item/value.h"
#include "store/requests.h"

namespace tabella::engine {

struct ItemChange {
  std::string key;
  std::optional<item::Item> old;
  std::optional<item::Item> now;  // nothing: the item is deleted
  bool by_service = false;        // its time to live ran out
};

// Writes the change; charges it to `capacity` if there is one.
void write_change(WriteContext& context, const TableSchema& table, const ItemChange& change,
                  store::ConsumedCapacity* capacity);

// Everything that an index held, when it goes.
void remove_index_entries(WriteContext& context, const IndexSchema& index);

// The size of the item collection that `item` is in, if the table has local indexes.
std::optional<store::ItemCollectionMetrics> collection_metrics(const Database& database,
                                                               const TableSchema& table, item::ItemView item);

// One entry per collection.
void add_metrics(std::vector<store::ItemCollectionMetrics>& all,
                 std::optional<store::ItemCollectionMetrics> one);

}  // namespace tabella::engine

// Rows of our table (outbox/message.h) that are found by name: they stand under one of the ids that are ours,
// with the name for their part. Plain functions, on any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "item/value.h"
#include "store/rows.h"
#include "store/store.h"

namespace tabella::outbox {

inline item::Item named_key(std::string_view id, std::string_view name) {
  return store::Row().set("id", id).set("part", name);
}

// With strong consistency; nothing if there is none.
store::Async<std::optional<item::Item>> find_named(store::Store& store, std::string table, std::string id,
                                                   std::string name);
store::Async<bool> remove_named(store::Store& store, std::string table, std::string id,
                                std::string name);  // whether it was there

struct NamedPage {
  std::vector<item::Item> rows;
  std::string next;  // empty: these were the last
};

// By name. `from` is the `next` of the page before; a validation error if it is none.
store::Async<NamedPage> list_named(store::Store& store, std::string table, std::string id, size_t limit,
                                   std::string from);

}  // namespace tabella::outbox

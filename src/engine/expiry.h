// Time to live: an entry for each item that says when it is to go, in the order of time, and the sweep that
// deletes what is due.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/change.h"
#include "engine/write_context.h"

namespace tabella::engine {

// The second at which the item is due; nothing if its attribute is missing or cannot be a time.
std::optional<uint64_t> due_second(const Expiry& expiry, item::ItemView item);

// Keeps the entry of an item that changes.
void write_expiry(WriteContext& context, const TableSchema& table, const ItemChange& change);

struct SweepResult {
  size_t deleted = 0;
  bool more = false;    // there are items left that are due,
  uint64_t behind = 0;  // for so many seconds
};

// Adds an entry, which the sweep will find once it is committed.
void put_expiry_entry(WriteContext& context, const Expiry& expiry, const std::string& entry);

// Looks at up to `most` entries that are due, and deletes their items. An item that is not due any more when
// its turn comes stays, and so does one whose time is more than five years past: AWS takes that for a
// mistake.
SweepResult sweep_expired(WriteContext& context, const TableSchema& table, size_t most);

// All entries, when time to live is disabled or the table goes.
void remove_expiry_entries(WriteContext& context, const Expiry& expiry);

}  // namespace tabella::engine

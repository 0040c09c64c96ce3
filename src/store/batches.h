// Many items at once: as many batches as it takes, and what a store did not get to done again.
#pragma once

#include <string>
#include <vector>

#include "store/store.h"

namespace tabella::store {

// Each item on its own: some may be written when others fail. The same item twice is refused by the store.
Async<void> write_all(Store& store, std::string table, std::vector<BatchWrite> writes);

// Those that are there, in no order. With strong consistency. `only`: nothing of them but these attributes.
Async<std::vector<Item>> get_all(Store& store, std::string table, std::vector<Item> keys,
                                 std::vector<std::string> only = {});

// The items of all pages.
Async<std::vector<Item>> query_all(Store& store, QueryRequest request);

}  // namespace tabella::store

// The tables that a system needs: made where they are missing, checked where they are there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace tabella::store {

struct TablePlan {
  TableDefinition definition;
  std::optional<std::string> time_to_live;  // the attribute with the time
};

// A table on demand with these keys: the partition key, and the sort key if there are two.
TablePlan plan_table(std::string name, std::vector<AttributeDefinition> keys,
                     std::optional<std::string> time_to_live = {});

enum class Missing { create, refuse };

// Makes the tables, indexes, streams and times to live that are not there yet, and waits until all are
// active; or, with Missing::refuse, says what is not there. A table that is there but has other keys is left
// alone and named in the error.
// `stopped` is asked between its pauses: where it says so, they end with an error.
Async<void> prepare_tables(Store& store, std::vector<TablePlan> plans, Missing missing,
                           std::function<bool()> stopped = {});

}  // namespace tabella::store

// What AWS refuses in a table's definition, in its order.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/error.h"
#include "store/table.h"

namespace tabella::engine {

store::Result<> check_definition(const store::TableDefinition& definition);

// The checks of one global index, for CreateTable and UpdateTable. `names` collects the names seen.
store::Result<> check_global_index(const store::IndexDefinition& index,
                                   const std::vector<store::AttributeDefinition>& attributes, bool on_demand,
                                   std::set<std::string>& names);

// Key attributes, and those that an index carries, have short names.
store::Result<> check_index_names(const store::IndexDefinition& index);

store::Result<> check_throughput(const std::optional<store::Throughput>& throughput);
store::Result<> check_tag_count(size_t count);
store::Result<> check_tags(const std::vector<store::Tag>& tags);

inline constexpr size_t kMaxGlobalIndexes = 20;
inline constexpr size_t kMaxTags = 50;

}  // namespace tabella::engine

// What Query and Scan share: the checks of their common parameters, and the walk over a range that makes a
// page.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "engine/database.h"
#include "engine/prepare.h"
#include "expression/tree.h"
#include "store/requests.h"

namespace tabella::engine {

enum class Reading { query, scan };

struct ReadExpressions {
  std::optional<expression::Condition> filter;
  std::optional<expression::Projection> projection;
  std::optional<std::vector<expression::KeyPredicate>> key;  // Query
};

// Checks the parameters that need no table, in AWS's order. `key_condition` is Query's.
store::Result<> check_read_parameters(const store::ReadOptions& options, Reading reading,
                                      const store::QueryRequest* query);
store::Result<ReadExpressions> prepare_read_expressions(const store::ReadOptions& options, Reading reading,
                                                        const store::QueryRequest* query,
                                                        expression::Caches& caches);
store::Result<> check_select(const store::ReadOptions& options, Reading reading);

// A read that has found its table and index.
struct ReadPlan {
  SchemaPtr table;
  const IndexSchema* index = nullptr;  // of `table`
  std::optional<expression::Condition> filter;
  std::optional<expression::Projection> projection;
  bool fetch = false;  // a local index that does not carry all that is wanted: the items come from the table
};

store::Result<ReadPlan> plan_read(const store::ReadOptions& options, ReadExpressions& expressions,
                                  const Catalogue& catalogue);
// What the index can give; after the start key has been checked, as AWS does.
store::Result<> check_projected(const store::ReadOptions& options, ReadPlan& plan);

// The key attributes by which the plan's table or index is walked.
std::span<const KeyAttribute> partition_of(const ReadPlan& plan);
std::span<const KeyAttribute> sort_of(const ReadPlan& plan);

// An ExclusiveStartKey has every attribute that the walk and the table are keyed by, of its type, and no
// other.
store::Result<> check_start_key(const ReadPlan& plan, item::ItemView start, Reading reading);

// Where an ExclusiveStartKey stands in the range.
std::string start_position(const ReadPlan& plan, item::ItemView start_key);

// Whether a page may take more than a few milliseconds: much is looked for in each item.
bool takes_long(const store::ReadOptions& options);

// What a page may read.
inline constexpr size_t kPageBytes = 1u << 20;

// `bytes_read` is what the page has read in ranges before this one; it is counted on.
store::Page read_page(const Database& database, const ReadPlan& plan, const store::ReadOptions& options,
                      Cursor cursor, size_t& bytes_read);
store::Page read_page(const Database& database, const ReadPlan& plan, const store::ReadOptions& options,
                      Cursor cursor);

}  // namespace tabella::engine

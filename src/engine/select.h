// How a SELECT reads: by key, by partition or all of it.
#pragma once

#include "engine/database.h"
#include "engine/item_cache.h"
#include "engine/statement.h"

namespace tabella::engine {

store::Result<store::ExecuteStatementResult> select(const PreparedStatement& statement,
                                                    const store::ExecuteStatementRequest& request,
                                                    const Catalogue& catalogue, const Database& database,
                                                    ItemCache& items);

}  // namespace tabella::engine

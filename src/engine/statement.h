// PartiQL statements made ready for the engine: which keys they name, and the writes they come to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/catalogue.h"
#include "engine/write_item.h"
#include "expression/cache.h"
#include "expression/statement.h"
#include "store/statements.h"

namespace tabella::engine {

// A statement with its parameters in place. Looks into the request's.
struct PreparedStatement {
  std::shared_ptr<const Checked<expression::Statement>> parsed;  // which the trees look into
  expression::BoundStatement bound;

  const expression::Statement& tree() const { return bound.statement; }
};

store::Result<PreparedStatement> prepare_statement(const store::Statement& request,
                                                   expression::Caches& caches);

// The key that a statement's WHERE pins down by equality; nothing if it does not name every key attribute.
// With `alone`, it must say nothing else.
std::optional<item::Item> key_in_where(const TableSchema& table, const expression::Statement& statement,
                                       bool alone = false);

// INSERT, UPDATE, DELETE or EXISTS as a write of one item.
store::Result<WriteAction> to_action(PreparedStatement& statement, const store::Statement& request,
                                     const Catalogue& catalogue);

store::ReturnValues returning(const expression::Statement& statement);

// What a SELECT shows of an item.
item::Item shown(const expression::Statement& statement, item::Item item);

}  // namespace tabella::engine

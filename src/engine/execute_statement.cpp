#include "engine/engine.h"
#include "engine/select.h"
#include "engine/statement.h"

namespace tabella::engine {

using expression::Statement;
using store::ExecuteStatementRequest;
using store::ExecuteStatementResult;

store::Async<ExecuteStatementResult> Engine::execute_statement(ExecuteStatementRequest request) {
  TABELLA_CO_ASSIGN(auto statement, prepare_statement(request.statement, caches_));
  if (statement.tree().kind == Statement::Kind::select) {
    const auto selected = [&] { return select(statement, request, catalogue_, database_, items_); };
    constexpr size_t kShort = 200;  // a statement of this length looks for little in each item
    if (request.statement.text.size() <= kShort) co_return selected();
    co_return co_await long_work_.run(selected);
  }
  if (statement.tree().kind == Statement::Kind::exists)
    co_return store::refuse("EXISTS() can only be used in ExecuteTransaction");
  TABELLA_CO_ASSIGN(auto action, to_action(statement, request.statement, catalogue_));
  store::WriteOptions options;
  options.return_values = returning(statement.tree());
  options.capacity = request.capacity;
  TABELLA_CO_ASSIGN(auto written, co_await write(action, options));
  ExecuteStatementResult result{.capacity = std::move(written.capacity)};
  if (written.attributes) result.items.push_back(std::move(*written.attributes));
  co_return result;
}

}  // namespace tabella::engine

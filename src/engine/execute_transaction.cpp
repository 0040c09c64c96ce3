#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/statement.h"
#include "engine/transaction.h"

namespace tabella::engine {

using expression::Statement;
using store::ExecuteTransactionRequest;
using store::ExecuteTransactionResult;
using store::refuse;
using store::Result;

namespace {

Result<> check_statement(const Statement& statement) {
  if (statement.returning) return refuse("RETURNING clause is not supported in ExecuteTransaction.");
  if (statement.index) return refuse("Reads on indices are not supported within transactions.");
  return {};
}

Result<> check_exists(const TableSchema& table, const Statement& statement) {
  if (statement.kind != Statement::Kind::exists) return {};
  if (key_in_where(table, statement) && !key_in_where(table, statement, true)) return {};
  return refuse("EXISTS() must contain a single item read with additional condition");
}

Result<std::vector<PreparedStatement>> prepare_statements(const ExecuteTransactionRequest& request,
                                                          expression::Caches& caches) {
  std::vector<PreparedStatement> statements;
  for (size_t i = 0; i < request.statements.size(); ++i) {
    const auto explain = [&](const store::Error& error) {
      return refuse(fmt::format("Validation failed in TransactStatements[{}]: {}", i, error.message));
    };
    if (request.statements[i].fault) return refuse(*request.statements[i].fault);
    auto statement = prepare_statement(request.statements[i], caches);
    if (!statement) return explain(statement.error());
    if (auto checked = check_statement(statement->tree()); !checked) return explain(checked.error());
    statements.push_back(std::move(*statement));
  }
  const auto writes =
      std::ranges::count_if(statements, [](const PreparedStatement& s) { return s.tree().writes(); });
  if (writes > 0 && writes < static_cast<ptrdiff_t>(statements.size()))
    return refuse(
        "ExecuteTransaction API does not support both read and write operations in the same request.");
  return statements;
}

std::string statements_fingerprint(const ExecuteTransactionRequest& request) {
  std::string all;
  for (const auto& statement : request.statements) {
    put_sized(all, statement.text);
    all.push_back(statement.return_old_on_failure ? '+' : '-');
    item::ItemBuilder parameters;
    if (statement.parameters)
      for (size_t i = 0; i < statement.parameters->size(); ++i)
        parameters.add(fmt::format("{:04}", i), item::ValueView((*statement.parameters)[i]));
    item::append_canonical(all, parameters.finish());
  }
  return sha256(all);
}

Result<std::vector<WriteAction>> to_actions(std::vector<PreparedStatement>& statements,
                                            const ExecuteTransactionRequest& request,
                                            const Catalogue& catalogue) {
  std::vector<WriteAction> actions;
  for (size_t i = 0; i < statements.size(); ++i) {
    if (const auto table = catalogue.find(statements[i].tree().table))
      if (auto checked = check_exists(*table, statements[i].tree()); !checked)
        return refuse(
            fmt::format("Validation failed in TransactStatements[{}]: {}", i, checked.error().message));
    auto action = to_action(statements[i], request.statements[i], catalogue);
    if (!action) return cancel_for(statements.size(), i, std::move(action).error());
    actions.push_back(std::move(*action));
  }
  TABELLA_TRY(check_no_duplicates(actions));
  return actions;
}

}  // namespace

Result<ExecuteTransactionResult> Engine::read_transaction(const std::vector<PreparedStatement>& statements,
                                                          const ExecuteTransactionRequest& request) {
  std::vector<TransactRead> reads;
  for (size_t i = 0; i < statements.size(); ++i) {
    TABELLA_ASSIGN(auto table, find_table(catalogue_, statements[i].tree().table));
    const auto key = key_in_where(*table, statements[i].tree(), true);
    if (!key)
      return refuse(fmt::format(
          "Validation failed in TransactStatements[{}]: Select statements within ExecuteTransaction must "
          "specify the primary key in the where clause.",
          i));
    TABELLA_TRY(check_key(*table, *key));
    auto name = item_key(*table, *key);
    reads.push_back({std::move(table), std::move(name)});
  }
  ExecuteTransactionResult result;
  Accounts accounts(store::CapacityKind::read);
  TABELLA_ASSIGN(result.responses, read_at_once(database_, reads, accounts, request.capacity));
  for (size_t i = 0; i < statements.size(); ++i)
    if (auto& item = result.responses[i]) item = shown(statements[i].tree(), std::move(*item));
  if (request.capacity != store::CapacityDetail::none) result.capacity = std::move(accounts.all);
  return result;
}

store::Async<ExecuteTransactionResult> Engine::execute_transaction(ExecuteTransactionRequest request) {
  TABELLA_CO_ASSIGN(auto statements, prepare_statements(request, caches_));
  if (!statements.front().tree().writes())
    co_return co_await long_work_.run([&] { return read_transaction(statements, request); });

  TABELLA_CO_ASSIGN(auto actions, to_actions(statements, request, catalogue_));
  Transaction transaction{.actions = std::move(actions), .capacity = request.capacity};
  if (request.token) {
    transaction.token = "s" + *request.token;
    transaction.fingerprint = statements_fingerprint(request);
  }
  TABELLA_CO_ASSIGN(auto written, co_await run(transaction));
  co_return ExecuteTransactionResult{.responses = {}, .capacity = std::move(written.capacity)};
}

}  // namespace tabella::engine

#include <algorithm>
#include <unordered_set>

#include "engine/capacity.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/statement.h"

namespace tabella::engine {

using expression::Statement;
using store::BatchExecuteStatementRequest;
using store::BatchExecuteStatementResult;
using store::refuse;
using store::Result;

namespace {

// One statement of the batch: ready, or with what is wrong with it.
struct Member {
  std::optional<PreparedStatement> statement;
  std::optional<WriteAction> action;  // a write
  SchemaPtr table;
  std::string key;
  std::optional<store::Error> error;
};

Result<> prepare_read(Member& member, const Catalogue& catalogue) {
  const auto& tree = member.statement->tree();
  TABELLA_ASSIGN(member.table, find_table(catalogue, tree.table));
  const auto key = tree.index ? std::nullopt : key_in_where(*member.table, tree, true);
  if (!key)
    return refuse(
        "Select statements within BatchExecuteStatement must specify the primary key in the where clause.");
  TABELLA_TRY(check_key(*member.table, *key));
  member.key = item_key(*member.table, *key);
  return {};
}

Result<> prepare_write(Member& member, const store::Statement& request, const Catalogue& catalogue) {
  if (member.statement->tree().kind == Statement::Kind::exists)
    return refuse("EXISTS() can only be used in ExecuteTransaction");
  TABELLA_ASSIGN(member.action, to_action(*member.statement, request, catalogue));
  member.action->return_old_on_failure = false;  // AWS does not look at it in a batch
  member.table = member.action->table;
  member.key = member.action->key;
  return {};
}

Member prepare_member(const store::Statement& request, expression::Caches& caches,
                      const Catalogue& catalogue) {
  Member member;
  auto statement = prepare_statement(request, caches);
  if (!statement) {
    member.error = std::move(statement).error();
    return member;
  }
  member.statement = std::move(*statement);
  auto prepared = member.statement->tree().writes() ? prepare_write(member, request, catalogue)
                                                    : prepare_read(member, catalogue);
  if (!prepared) member.error = std::move(prepared).error();
  return member;
}

Result<> check_together(const std::vector<Member>& members) {
  bool reads = false;
  bool writes = false;
  std::unordered_set<std::string_view, KeyedHash> keys;
  for (const auto& member : members) {
    if (!member.statement) continue;
    (member.statement->tree().writes() ? writes : reads) = true;
    if (!member.key.empty() && !keys.insert(member.key).second)
      return refuse("Provided list of item keys contains duplicates");
  }
  if (reads && writes) return refuse("Read and write requests together in the same batch is not supported.");
  return {};
}

store::StatementResponse failed(const Member& member, store::Error error) {
  store::StatementResponse response;
  if (member.table && error.code != store::ErrorCode::validation) response.table = member.table->name();
  response.error = std::move(error);
  return response;
}

store::StatementResponse write_member(WriteContext& context, Member& member, store::CapacityDetail detail,
                                      Accounts& accounts) {
  store::WriteOptions options;
  options.return_values = returning(member.statement->tree());
  options.capacity = detail;
  auto written = write_item(context, *member.action, options);
  if (!written) return failed(member, std::move(written).error());
  if (written->capacity) accounts.add(*written->capacity);
  return {.table = member.table->name(), .item = std::move(written->attributes)};
}

store::StatementResponse read_member(ItemCache& items, const Member& member, bool consistent,
                                     store::CapacityDetail detail, Accounts& accounts) {
  auto stored = items.get(member.key);
  accounts.of(member.table->name(), detail).table_units +=
      read_units(stored ? item::ItemView(*stored).size() : 0, consistent);
  store::StatementResponse response{.table = member.table->name()};
  if (stored) response.item = shown(member.statement->tree(), item::Item(std::move(*stored)));
  return response;
}

}  // namespace

store::Async<BatchExecuteStatementResult> Engine::batch_execute_statement(
    BatchExecuteStatementRequest request) {
  std::vector<Member> members;
  for (const auto& statement : request.statements)
    members.push_back(prepare_member(statement, caches_, catalogue_));
  TABELLA_CO_TRY(check_together(members));

  BatchExecuteStatementResult result;
  Accounts accounts(store::CapacityKind::plain);
  const auto respond = [&](WriteContext* context) {
    for (size_t i = 0; i < members.size(); ++i) {
      auto& member = members[i];
      if (member.error)
        result.responses.push_back(failed(member, std::move(*member.error)));
      else if (context)
        result.responses.push_back(write_member(*context, member, request.capacity, accounts));
      else
        result.responses.push_back(
            read_member(items_, member, request.statements[i].consistent, request.capacity, accounts));
    }
  };
  std::vector<WriteAction*> actions;
  for (auto& member : members)
    if (member.action) actions.push_back(&*member.action);
  if (!actions.empty()) {
    auto executed = co_await execute(actions, [&](WriteContext& context) { respond(&context); });
    if (!executed) co_return std::unexpected(std::move(executed).error());
  } else {
    co_await long_work_.run([&] {
      respond(nullptr);
      return true;
    });
  }
  if (request.capacity != store::CapacityDetail::none) result.capacity = std::move(accounts.all);
  co_return result;
}

}  // namespace tabella::engine

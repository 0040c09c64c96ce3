#include "engine/transaction.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/capacity.h"
#include "engine/tokens.h"

namespace tabella::engine {

using store::CancellationReason;
using store::ErrorCode;
using store::refuse;
using store::Result;
using store::TransactWriteItemsResult;

namespace {

CancellationReason reason_for(store::Error error) {
  const auto code = [&] {
    switch (error.code) {
      case ErrorCode::conditional_check_failed: return "ConditionalCheckFailed";
      case ErrorCode::duplicate_item: return "DuplicateItem";
      default: return "ValidationError";
    }
  };
  return {.code = code(), .message = std::move(error.message), .item = std::move(error.item)};
}

// An empty key is a fault of the request, not of one action.
bool stands_alone(const store::Error& error) {
  return error.code == ErrorCode::resource_not_found ||
         error.message.starts_with("One or more parameter values are not valid.");
}

struct Evaluated {
  SchemaPtr table;
  ItemChange change;

  size_t larger_image() const {
    return std::max(change.old ? change.old->size() : 0, change.now ? change.now->size() : 0);
  }
};

Result<std::vector<Evaluated>> evaluate_all(const WriteContext& context, std::vector<WriteAction>& actions) {
  std::vector<Evaluated> evaluated;
  std::vector<CancellationReason> reasons;
  bool canceled = false;
  for (auto& action : actions) {
    TABELLA_ASSIGN(auto table, current_table(context, *action.table));
    auto change = evaluate(context, *table, action);
    if (!change && stands_alone(change.error())) return std::unexpected(std::move(change).error());
    if (change) {
      reasons.emplace_back();
      evaluated.push_back({std::move(table), std::move(*change)});
    } else {
      canceled = true;
      reasons.push_back(reason_for(std::move(change).error()));
    }
  }
  if (canceled) return cancel(std::move(reasons));
  return evaluated;
}

// What AWS charges for a repetition: to read what the first run wrote.
std::vector<std::pair<std::string, double>> read_units_of(const std::vector<Evaluated>& evaluated) {
  std::map<std::string, double> units;
  for (const auto& each : evaluated) units[each.table->name()] += 2 * read_units(each.larger_image(), true);
  return {units.begin(), units.end()};
}

Result<TransactWriteItemsResult> repeat(const Transaction& transaction, const TokenRecord& record) {
  if (record.fingerprint != transaction.fingerprint)
    return store::fail(
        ErrorCode::idempotent_parameter_mismatch,
        "The request uses the same client token as a previous, but different, request within ten minutes");
  TransactWriteItemsResult result;
  if (transaction.capacity == store::CapacityDetail::none) return result;
  Accounts accounts(store::CapacityKind::read);
  for (const auto& [table, units] : record.read_units)
    accounts.of(table, transaction.capacity).table_units += units;
  result.capacity = std::move(accounts.all);
  return result;
}

void add_metrics_of(const WriteContext& context, const Evaluated& each, TransactWriteItemsResult& result) {
  const auto& change = each.change;
  if (!change.old && !change.now) return;
  auto metrics = collection_metrics(context.database(), *each.table,
                                    change.now ? change.now->view() : change.old->view());
  if (!metrics) return;
  auto& all = result.collection_metrics;
  auto at = std::ranges::find_if(all, [&](const auto& entry) { return entry.first == each.table->name(); });
  if (at == all.end())
    at = all.insert(all.end(), {each.table->name(), std::vector<store::ItemCollectionMetrics>()});
  add_metrics(at->second, std::move(metrics));
}

}  // namespace

std::unexpected<store::Error> cancel(std::vector<CancellationReason> reasons) {
  std::string codes;
  for (const auto& reason : reasons) {
    if (!codes.empty()) codes.append(", ");
    codes.append(reason.code);
  }
  store::Error error(
      ErrorCode::transaction_canceled,
      fmt::format("Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
                  codes));
  error.reasons = std::move(reasons);
  return std::unexpected(std::move(error));
}

std::unexpected<store::Error> cancel_for(size_t actions, size_t at, store::Error error) {
  if (stands_alone(error)) return std::unexpected(std::move(error));
  std::vector<CancellationReason> reasons(actions);
  reasons[at] = reason_for(std::move(error));
  return cancel(std::move(reasons));
}

Result<std::vector<std::optional<item::Item>>> read_at_once(const Database& database,
                                                            const std::vector<TransactRead>& reads,
                                                            Accounts& accounts,
                                                            store::CapacityDetail detail) {
  constexpr size_t kMaxResponse = 4u << 20;
  std::vector<std::string> keys;
  for (const auto& read : reads) keys.push_back(read.key);
  TABELLA_TRY(check_no_duplicates(keys));
  std::vector<std::optional<item::Item>> items;
  size_t bytes = 0;
  for (auto& stored : database.get_all(keys)) {
    const auto& table = *reads[items.size()].table;
    auto& item = items.emplace_back();
    if (stored) item = item::Item(std::move(*stored));
    const size_t size = item ? item->size() : 0;
    accounts.of(table.name(), detail).table_units += 2 * read_units(size, true);
    bytes += size;
  }
  if (bytes > kMaxResponse)
    return refuse(fmt::format("Transaction response size cannot exceed 4MB. Response Size: {}", bytes));
  return items;
}

Result<> check_no_duplicates(const std::vector<std::string>& keys) {
  const std::unordered_set<std::string_view, KeyedHash> distinct(keys.begin(), keys.end());
  if (distinct.size() == keys.size()) return {};
  return refuse("Transaction request cannot include multiple operations on one item");
}

Result<> check_no_duplicates(const std::vector<WriteAction>& actions) {
  std::vector<std::string> keys;
  for (const auto& action : actions) keys.push_back(action.key);
  return check_no_duplicates(keys);
}

Result<TransactWriteItemsResult> run_transaction(WriteContext& context, Transaction& transaction) {
  if (transaction.token)
    if (const auto record = find_token(context, *transaction.token)) return repeat(transaction, *record);
  TABELLA_ASSIGN(auto evaluated, evaluate_all(context, transaction.actions));

  TransactWriteItemsResult result;
  Accounts accounts(store::CapacityKind::write);
  for (size_t i = 0; i < evaluated.size(); ++i) {
    const auto& each = evaluated[i];
    // A transaction writes the table twice, to prepare and to commit; its indexes once.
    auto& account = accounts.of(each.table->name(), transaction.capacity);
    account.table_units += 2 * write_units(each.larger_image());
    if (transaction.collection_metrics) add_metrics_of(context, each, result);
    if (transaction.actions[i].kind == WriteAction::Kind::check) continue;
    const double table_units = account.table_units;
    write_change(context, *each.table, each.change, &account);
    account.table_units = table_units;
  }
  if (transaction.token)
    remember_token(context, *transaction.token,
                   {.fingerprint = transaction.fingerprint, .read_units = read_units_of(evaluated)});
  if (transaction.capacity != store::CapacityDetail::none) result.capacity = std::move(accounts.all);
  return result;
}

}  // namespace tabella::engine

// What became of a write with a condition.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "store/store.h"

namespace tabella::store {

inline bool failed_its_condition(const Error& error) {
  return error.code == ErrorCode::conditional_check_failed;
}

// Why an action of a transaction stood in its way.
inline bool failed_its_condition(const CancellationReason& reason) {
  return reason.code == "ConditionalCheckFailed";
}
// Of a transaction: whether the condition of any of its actions failed.
inline bool failed_its_conditions(const Error& error) {
  return std::ranges::any_of(error.reasons,
                             [](const CancellationReason& reason) { return failed_its_condition(reason); });
}

// Somebody else has changed what a write asks for, or is just doing it.
inline bool lost_a_race(const Error& error) {
  if (error.code == ErrorCode::transaction_conflict || failed_its_condition(error)) return true;
  return error.code == ErrorCode::transaction_canceled &&
         std::ranges::any_of(error.reasons, [](const CancellationReason& reason) {
           return failed_its_condition(reason) || reason.code == "TransactionConflict";
         });
}

// It can never be made, whoever tries it again.
inline bool is_invalid(const Error& error) {
  return error.code == ErrorCode::validation ||
         std::ranges::any_of(error.reasons, [](const CancellationReason& reason) {
           return reason.code == "ValidationError";
         });
}

// Whether a change was made; that its condition failed is no error.
inline Result<bool> was_made(Result<WriteResult> changed) {
  if (changed) return true;
  if (failed_its_condition(changed.error())) return false;
  return error_of(changed);
}

// The item that a condition failed on. Not every DynamoDB returns it with the error.
inline Async<std::optional<Item>> item_behind(Store& store, Error failed_condition, std::string table,
                                              Item key) {
  if (failed_condition.item) co_return std::move(failed_condition.item);
  TABELLA_CO_ASSIGN(auto found, co_await store.get_item(
                                    {.table = std::move(table), .key = std::move(key), .consistent = true}));
  co_return std::move(found.item);
}

}  // namespace tabella::store

// What became of a write with a condition.
#pragma once

#include <optional>
#include <string>

#include "store/store.h"

namespace tabella::store {

inline bool failed_its_condition(const Error& error) {
  return error.code == ErrorCode::conditional_check_failed;
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

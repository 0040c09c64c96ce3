// What can go wrong in a Store, in DynamoDB's terms.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "item/value.h"

namespace tabella::store {

enum class ErrorCode {
  validation,
  resource_not_found,
  resource_in_use,
  conditional_check_failed,
  limit_exceeded,
  access_denied,
  unauthenticated,  // the credentials are not known, or the signature is wrong
  transaction_canceled,
  transaction_conflict,  // somebody else's transaction was at the item
  idempotent_parameter_mismatch,
  duplicate_item,
  trimmed_data_access,
  expired_iterator,
  throttled,
  unavailable,  // the store could not be reached, or did not answer in time
  internal,
};

// Why one action of a transaction stood in its way; "None" where it did not.
struct CancellationReason {
  std::string code = "None";
  std::string message;
  std::optional<item::Item> item;
};

struct Error {
  Error(ErrorCode c, std::string m) : code(c), message(std::move(m)) {}
  // What item/ and expression/ refuse is a validation error here.
  Error(Invalid invalid) : code(ErrorCode::validation), message(std::move(invalid.message)) {}  // NOLINT

  ErrorCode code;
  std::string message;
  std::optional<item::Item> item;  // conditional_check_failed, when the request asked for the old item
  std::vector<CancellationReason> reasons;  // transaction_canceled: one per action
  // The request may have taken effect all the same: an answer was lost on the way. A condition that failed
  // may have failed because of it.
  bool unsure = false;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> refuse(std::string message) {
  return std::unexpected(Error(ErrorCode::validation, std::move(message)));
}
// AWS's beginning of most complaints about a request's values.
inline std::unexpected<Error> wrong(const std::string& what) {
  return refuse("One or more parameter values were invalid: " + what);
}
inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error(code, std::move(message)));
}

// The error of a result that is not needed any more, to return.
template <class T>
std::unexpected<Error> error_of(T& result) {
  return std::unexpected(std::move(result).error());
}

}  // namespace tabella::store

// Errors as they leave the door: a JSON body with AWS's type names.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "item/attribute_json.h"
#include "store/error.h"

namespace tabella::protocol {
struct SignatureError;
}

namespace tabella::wire {

struct WireError {
  std::string type;  // "com.amazon.coral.validate#ValidationException"
  std::optional<std::string> message;
  int status = 400;
  std::optional<item::Item> item;
  std::vector<store::CancellationReason> reasons;
};

template <class T = void>
using Result = std::expected<T, WireError>;

WireError validation_error(std::string message);
WireError serialization_error(std::optional<std::string> message);
// UnknownOperationException, MissingAuthenticationTokenException and the like.
WireError service_error(std::string_view name, std::optional<std::string> message);
WireError internal_error();

// The one place where a Store's errors get their names.
WireError to_wire(store::Error error);
WireError to_wire(protocol::SignatureError error);

std::string error_body(const WireError& error);

}  // namespace tabella::wire

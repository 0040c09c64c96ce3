// What DynamoDB calls a Store's errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/error.h"

namespace tabella::protocol {

// What follows the '#', if there is one.
std::string_view short_name(std::string_view type);

// "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
std::string error_type(store::ErrorCode code);
// By the name after the '#', if there is one. Nothing for a name that no operation of a Store ends with.
std::optional<store::ErrorCode> error_code(std::string_view type);

// "ResourceNotFound", as BatchExecuteStatement says it of one statement.
std::string_view statement_error(store::ErrorCode code);
store::ErrorCode statement_error_code(std::string_view name);

}  // namespace tabella::protocol

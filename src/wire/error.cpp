#include "wire/error.h"

#include <fmt/format.h>

#include "item/json.h"

namespace tabella::wire {
namespace {

constexpr std::string_view kService = "com.amazon.coral.service#";
constexpr std::string_view kDynamo = "com.amazonaws.dynamodb.v20120810#";

std::string type_of(store::ErrorCode code) {
  using store::ErrorCode;
  switch (code) {
    case ErrorCode::validation: return "com.amazon.coral.validate#ValidationException";
    case ErrorCode::resource_not_found: return fmt::format("{}ResourceNotFoundException", kDynamo);
    case ErrorCode::resource_in_use: return fmt::format("{}ResourceInUseException", kDynamo);
    case ErrorCode::conditional_check_failed:
      return fmt::format("{}ConditionalCheckFailedException", kDynamo);
    case ErrorCode::limit_exceeded: return fmt::format("{}LimitExceededException", kDynamo);
    case ErrorCode::access_denied: return fmt::format("{}AccessDeniedException", kService);
    case ErrorCode::internal: return fmt::format("{}InternalServerError", kDynamo);
  }
  return {};
}

}  // namespace

WireError validation_error(std::string message) {
  return {.type = type_of(store::ErrorCode::validation), .message = std::move(message)};
}

WireError serialization_error(std::optional<std::string> message) {
  return service_error("SerializationException", std::move(message));
}

WireError service_error(std::string_view name, std::optional<std::string> message) {
  return {.type = fmt::format("{}{}", kService, name), .message = std::move(message)};
}

WireError internal_error() {
  return {.type = type_of(store::ErrorCode::internal), .message = "Internal server error", .status = 500};
}

WireError to_wire(store::Error error) {
  return {.type = type_of(error.code),
          .message = std::move(error.message),
          .status = error.code == store::ErrorCode::internal ? 500 : 400,
          .item = std::move(error.item)};
}

std::string error_body(const WireError& error) {
  std::string body;
  {
    item::JsonObjectWriter json(body);
    json.string("__type", error.type);
    // AWS writes this one, and only this one, with a capital.
    const bool capital = error.type.ends_with("#SerializationException");
    if (error.message) json.string(capital ? "Message" : "message", *error.message);
    if (error.item) item::append_item_json(json.key("Item"), *error.item);
  }
  return body;
}

}  // namespace tabella::wire

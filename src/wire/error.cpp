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
    case ErrorCode::transaction_canceled: return fmt::format("{}TransactionCanceledException", kDynamo);
    case ErrorCode::idempotent_parameter_mismatch:
      return fmt::format("{}IdempotentParameterMismatchException", kDynamo);
    case ErrorCode::duplicate_item: return fmt::format("{}DuplicateItemException", kDynamo);
    case ErrorCode::trimmed_data_access: return fmt::format("{}TrimmedDataAccessException", kDynamo);
    case ErrorCode::expired_iterator: return fmt::format("{}ExpiredIteratorException", kDynamo);
    case ErrorCode::access_denied: return fmt::format("{}AccessDeniedException", kService);
    case ErrorCode::internal: return fmt::format("{}InternalServerError", kDynamo);
  }
  return {};
}

void append_reasons(std::string& out, const std::vector<store::CancellationReason>& reasons) {
  item::JsonArrayWriter array(out);
  for (const auto& reason : reasons) {
    item::JsonObjectWriter json(array.element());
    json.string("Code", reason.code);
    if (!reason.message.empty()) json.string("Message", reason.message);
    if (reason.item) item::append_item_json(json.key("Item"), *reason.item);
  }
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
          .item = std::move(error.item),
          .reasons = std::move(error.reasons)};
}

std::string error_body(const WireError& error) {
  std::string body;
  {
    item::JsonObjectWriter json(body);
    json.string("__type", error.type);
    // AWS writes these with a capital.
    const bool capital = error.type.ends_with("#SerializationException") || !error.reasons.empty();
    if (error.message) json.string(capital ? "Message" : "message", *error.message);
    if (error.item) item::append_item_json(json.key("Item"), *error.item);
    if (!error.reasons.empty()) append_reasons(json.key("CancellationReasons"), error.reasons);
  }
  return body;
}

}  // namespace tabella::wire

#include "wire/error.h"

#include <fmt/format.h>

#include "base/json.h"
#include "protocol/error_names.h"
#include "protocol/sigv4.h"

namespace tabella::wire {
namespace {

constexpr std::string_view kService = "com.amazon.coral.service#";
void append_reasons(std::string& out, const std::vector<store::CancellationReason>& reasons) {
  JsonArrayWriter array(out);
  for (const auto& reason : reasons) {
    JsonObjectWriter json(array.element());
    json.string("Code", reason.code);
    if (!reason.message.empty()) json.string("Message", reason.message);
    if (reason.item) item::append_item_json(json.key("Item"), *reason.item);
  }
}

int status_of(store::ErrorCode code) {
  if (code == store::ErrorCode::internal) return 500;
  return code == store::ErrorCode::unavailable ? 503 : 400;
}

}  // namespace

WireError validation_error(std::string message) {
  return {.type = protocol::error_type(store::ErrorCode::validation), .message = std::move(message)};
}

WireError serialization_error(std::optional<std::string> message) {
  return service_error("SerializationException", std::move(message));
}

WireError service_error(std::string_view name, std::optional<std::string> message) {
  return {.type = fmt::format("{}{}", kService, name), .message = std::move(message)};
}

WireError to_wire(protocol::SignatureError error) {
  return service_error(error.type, std::move(error.message));
}

WireError internal_error() {
  return {.type = protocol::error_type(store::ErrorCode::internal),
          .message = "Internal server error",
          .status = 500};
}

WireError to_wire(store::Error error) {
  return {.type = protocol::error_type(error.code),
          .message = std::move(error.message),
          .status = status_of(error.code),
          .item = std::move(error.item),
          .reasons = std::move(error.reasons)};
}

std::string error_body(const WireError& error) {
  std::string body;
  {
    JsonObjectWriter json(body);
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

#include "outbox/ses_answer.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

namespace tabella::outbox {

SesError::SesError(Invalid invalid) : SesError("BadRequestException", 400, std::move(invalid.message)) {}

SesError::SesError(store::Error error) : SesError("InternalFailure", 500, std::move(error.message)) {
  using enum store::ErrorCode;
  switch (error.code) {
    case validation:
      type = "BadRequestException";
      status = 400;
      return;
    case throttled:
    case limit_exceeded:
      type = "TooManyRequestsException";
      status = 429;
      return;
    case unavailable:
    case transaction_conflict:
    case transaction_canceled:
      type = "ServiceUnavailable";  // clients try again
      status = 503;
      return;
    case resource_not_found:
    case resource_in_use:
    case conditional_check_failed:
    case access_denied:
    case unauthenticated:
    case idempotent_parameter_mismatch:
    case duplicate_item:
    case trimmed_data_access:
    case expired_iterator:
    case internal: log::error("SES: {}", message); return;
  }
}

std::unexpected<SesError> ses_no_template(std::string_view name) {
  return ses_not_found(fmt::format("Template {} does not exist.", name));
}

std::unexpected<SesError> ses_no_configuration_set(std::string_view name) {
  return ses_not_found(fmt::format("Configuration set {} does not exist.", name));
}

std::unexpected<SesError> ses_too_busy() {
  return std::unexpected(
      SesError("TooManyRequestsException", 429, "too many large requests are under way; try again"));
}

void answer_ses(net::HttpResponse& response, SesAnswer answer) {
  response.content_type = "application/json";
  response.add_header("x-amzn-RequestId", make_uuid());
  if (answer) {
    response.body = std::move(*answer);
    return;
  }
  response.status = answer.error().status;
  response.add_header("x-amzn-ErrorType", answer.error().type);
  response.body.clear();
  JsonObjectWriter(response.body).string("message", to_valid_utf8(answer.error().message));
}

}  // namespace tabella::outbox

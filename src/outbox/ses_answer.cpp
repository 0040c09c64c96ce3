#include "outbox/ses_answer.h"

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

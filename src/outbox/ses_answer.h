// Answers as Amazon SES v2 gives them: JSON, or the name of an error in a header and a sentence in the body.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"
#include "store/error.h"

namespace tabella::outbox {

struct SesError {
  SesError(std::string_view t, int s, std::string m) : type(t), status(s), message(std::move(m)) {}
  // What a request does not have right.
  SesError(Invalid invalid);  // NOLINT
  // What the store could not do; what it takes for a mistake of the request's is one here.
  SesError(store::Error error);  // NOLINT

  std::string_view type;  // "BadRequestException"; of static storage
  int status;
  std::string message;
};

template <class T>
using SesResult = std::expected<T, SesError>;
using SesAnswer = SesResult<std::string>;  // JSON

inline std::unexpected<SesError> ses_not_found(std::string message) {
  return std::unexpected(SesError("NotFoundException", 404, std::move(message)));
}
inline std::unexpected<SesError> ses_already_exists(std::string message) {
  return std::unexpected(SesError("AlreadyExistsException", 400, std::move(message)));
}

std::unexpected<SesError> ses_no_template(std::string_view name);
std::unexpected<SesError> ses_no_configuration_set(std::string_view name);
std::unexpected<SesError> ses_too_busy();  // there is no memory for it

void answer_ses(net::HttpResponse& response, SesAnswer answer);

}  // namespace tabella::outbox

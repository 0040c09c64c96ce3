// AWS Signature Version 4, the server's side.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http.h"
#include "wire/error.h"

namespace tabella::wire {

// What an Authorization header says, or the query string of a presigned URL. Borrows from the request.
struct Authorization {
  bool presigned = false;  // what follows is percent-encoded
  std::string_view algorithm;
  std::string_view credential;  // access key/yyyymmdd/region/service/aws4_request
  std::string_view signed_headers;
  std::string_view signature;
  std::string_view date;
  std::string_view expires;  // X-Amz-Expires: for how many seconds from then on; empty: as a header's
};

// Checks that a request is signed at all and that its parts are there, in AWS's words; whose signature it is
// and whether it is right is verify()'s business.
Result<Authorization> parse_authorization(const net::HttpRequest& request);

// Checks a request in full: time, scope, key, and the signature over method, target, headers and body as
// sent. A presigned URL is signed without its signature, and with the body that is sent to it.
class SignatureVerifier {
 public:
  SignatureVerifier(std::map<std::string, std::string, std::less<>> secrets, const Clock& clock)
      : secrets_(std::move(secrets)), clock_(clock) {}

  bool required() const { return !secrets_.empty(); }
  Result<> verify(const net::HttpRequest& request) const;

 private:
  const std::map<std::string, std::string, std::less<>> secrets_;  // by access key
  const Clock& clock_;
};

}  // namespace tabella::wire

// AWS Signature Version 4, the server's side: for the DynamoDB door, and for AWS clients at the HTTP port.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http.h"

namespace tabella::protocol {

// What is wrong with a signature, in AWS's words.
struct SignatureError {
  std::string_view type;  // "InvalidSignatureException"; of static storage
  std::string message;
};

template <class T>
using Signed = std::expected<T, SignatureError>;

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

// Whether a request says that it is signed, in its Authorization header or its query string.
bool claims_signature(const net::HttpRequest& request);

// Checks that a request is signed at all and that its parts are there; whose signature it is and whether it
// is right is verify()'s business.
Signed<Authorization> parse_authorization(const net::HttpRequest& request);

// Checks a request in full: time, scope, key, and the signature over method, target, headers and body as
// sent. A presigned URL is signed without its signature, and with the body that is sent to it.
//
// Thread-safe; borrows the clock.
class SignatureVerifier {
 public:
  using Secrets = std::map<std::string, std::string, std::less<>>;  // by access key

  // `service` is the one that signatures must be for, as in "dynamodb"; empty: any.
  SignatureVerifier(Secrets secrets, const Clock& clock, std::string service)
      : secrets_(std::move(secrets)), clock_(clock), service_(std::move(service)) {}

  bool required() const { return !secrets_.empty(); }
  // The access key that it is signed with.
  Signed<std::string> verify(const net::HttpRequest& request) const;

 private:
  const Secrets secrets_;
  const Clock& clock_;
  const std::string service_;
};

}  // namespace tabella::protocol

// Signatures of webhooks, as standardwebhooks.com has them: who gets a call can tell that it is from us,
// unchanged and not long ago.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/outbound.h"

namespace tabella::webhook {

// A call as it is signed; its parts travel as the headers webhook-id and webhook-timestamp, and the body.
struct Signed {
  std::string_view id;
  std::string_view timestamp;  // seconds since 1970
  std::string_view body;
};

// What goes into the header webhook-signature. A secret whsec_… is base64 of the key; any other is the key.
std::string sign(std::string_view secret, const Signed& call);

// A secret for webhooks alone, made of another one: whoever checks signatures by it can do nothing else with
// it.
std::string secret_of(std::string_view secret);

// Adds the headers of a call that is made now, with the body that it has; without a secret it is not signed.
void add_headers(net::OutboundRequest& request, std::string_view secret, std::string_view id, TimePoint now);

// Whether `signatures`, the header, has one by `secret`, and the call was made about now.
bool verify(std::string_view secret, const Signed& call, std::string_view signatures, TimePoint now);

}  // namespace tabella::webhook

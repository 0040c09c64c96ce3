// A call of a webhook: a POST of JSON, signed (signature.h), and whether it was taken.
#pragma once

#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/outbound.h"

namespace tabella::webhook {

// Why a call was not taken.
struct Failure {
  bool final = false;  // there is no use in trying again
  std::string why;
};

// `request` has the URL and the body; what else is to be said of a POST of JSON is added. One that is made
// again has the same id. Nothing: it was taken.
boost::asio::awaitable<std::optional<Failure>> call(net::Outbound& outbound, net::OutboundRequest request,
                                                    std::string secret, std::string id, TimePoint now);

}  // namespace tabella::webhook

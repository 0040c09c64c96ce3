#pragma once

#include <expected>

#include "manhunt/channel.h"
#include "net/outbound.h"

namespace tabella::manhunt {

// What became of a message that was sent by a request, whichever provider it was to.
Sent sent_by_http(const std::expected<net::OutboundReply, net::OutboundError>& reply);

}  // namespace tabella::manhunt

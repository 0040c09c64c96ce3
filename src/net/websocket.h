// The server's side of a WebSocket (RFC 6455) that only ever tells: text goes out, and what comes in is read
// for pings and the end.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "net/http.h"

namespace tabella::net {

// Answers the handshake; false, with the response filled in, if the request is none.
bool accept_websocket(const HttpRequest& request, HttpResponse& response);

// What stands before a text of so many bytes: together they are a frame.
std::string websocket_text_head(size_t size);
std::string websocket_ping();

// Reads until the other side closes or breaks the rules. What is to be answered, pings and the close, is put
// behind `answers`, for whoever writes: a frame must not stand inside another. `unread` came behind the
// handshake.
boost::asio::awaitable<void> drain_websocket(Connection& connection, std::string unread,
                                             std::string& answers);

}  // namespace tabella::net

#include "net/websocket.h"

#include "base/base64.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "net/listener.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr size_t kLargestFrame = 4096;  // of a client that has nothing to say
constexpr uint8_t kText = 1, kClose = 8, kPing = 9, kPong = 10;

std::string frame_head(uint8_t kind, size_t size) {
  std::string out;
  out.push_back(static_cast<char>(0x80 | kind));
  if (size < 126) {
    out.push_back(static_cast<char>(size));
  } else if (size < 65536) {
    out.push_back(126);
    put_u16(out, static_cast<uint16_t>(size));
  } else {
    out.push_back(127);
    put_u64(out, size);
  }
  return out;
}

std::string frame(uint8_t kind, std::string_view payload) {
  return frame_head(kind, payload.size()).append(payload);
}

}  // namespace

bool accept_websocket(const HttpRequest& request, HttpResponse& response) {
  const auto key = request.header("sec-websocket-key");
  if (!same_header(request.header("upgrade"), "websocket") || key.empty() ||
      request.header("sec-websocket-version") != "13") {
    response.status = 400;
    response.content_type = "text/plain; charset=utf-8";
    response.add_header("Sec-WebSocket-Version", "13");
    response.body = "this is a WebSocket: connect with one\n";
    return false;
  }
  response.status = 101;
  response.add_header("Upgrade", "websocket");
  response.add_header("Sec-WebSocket-Accept",
                      to_base64(sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")));
  return true;
}

std::string websocket_text_head(size_t size) { return frame_head(kText, size); }
std::string websocket_ping() { return frame(kPing, {}); }

awaitable<void> drain_websocket(Connection& connection, std::string unread, std::string& answers) {
  while (true) {
    // Header, mask and payload: clients mask what they send.
    while (unread.size() >= 6) {
      const auto kind = static_cast<uint8_t>(unread[0]) & 0x0f;
      const auto length = static_cast<uint8_t>(unread[1]) & 0x7f;
      if (!(static_cast<uint8_t>(unread[1]) & 0x80) || length > 125) co_return;
      if (unread.size() < 6u + length) break;
      std::string payload = unread.substr(6, length);
      for (size_t i = 0; i < payload.size(); ++i)
        payload[i] = static_cast<char>(payload[i] ^ unread[2 + i % 4]);
      unread.erase(0, 6u + length);
      if (kind == kClose || kind == kPing) answers += frame(kind == kClose ? kClose : kPong, payload);
      if (kind == kClose) co_return;
    }
    if (unread.size() > kLargestFrame || answers.size() > kLargestFrame) co_return;
    std::array<char, 1024> room;  // NOLINT: filled by the read
    const auto [error, n] = co_await connection.transport().read_some(asio::buffer(room));
    if (error) co_return;
    unread.append(room.data(), n);
  }
}

}  // namespace tabella::net

#include "net/streams.h"

#include <boost/asio/buffer.hpp>

#include "base/log.h"
#include "base/text.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;

namespace {
constexpr std::chrono::seconds kWriteTimeout{30};
constexpr std::chrono::seconds kKeepAlive{15};
constexpr size_t kPiece = 64 * 1024;

// A line break would end the field.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::erase_if(line, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return line;
}
}  // namespace

awaitable<bool> EventStream::write(std::string_view text) {
  const bool written =
      co_await connection_.write_all({asio::buffer(text), asio::const_buffer()}, kWriteTimeout);
  connection_.never_expire();  // until the next event
  last_ = std::chrono::steady_clock::now();
  co_return written;
}

awaitable<bool> EventStream::send(std::string_view id, std::string_view event, std::string_view data) {
  std::string text;
  if (!event.empty()) text.append("event: ").append(one_line(event)).append("\n");
  if (!id.empty()) text.append("id: ").append(one_line(id)).append("\n");
  for (const auto line : split(data, '\n')) text.append("data: ").append(one_line(line)).append("\n");
  text.append("\n");
  co_return co_await write(text);
}

awaitable<bool> EventStream::keep_alive() {
  if (std::chrono::steady_clock::now() - last_ < kKeepAlive) co_return true;
  co_return co_await write(":\n\n");
}

std::string last_event_id(const Call& call) {
  const auto header = call.request.header("last-event-id");
  return header.empty() ? call.text("last-event-id") : std::string(header);
}

void answer_events(Call& call, std::function<awaitable<void>(EventStream&)> tell) {
  call.response.content_type = "text/event-stream";
  call.response.add_header("Cache-Control", "no-cache");
  call.response.add_header("X-Accel-Buffering", "no");  // proxies are to pass it on at once
  call.response.then = [tell = std::move(tell)](Connection& connection, std::string) -> awaitable<void> {
    connection.never_expire();
    EventStream stream(connection);
    try {
      co_await tell(stream);
    } catch (const std::exception& error) {
      log::error("a stream of events ends early: {}", error.what());
    }
  };
}

awaitable<bool> LineWriter::end_line() {
  text_.push_back('\n');
  if (text_.size() < kPiece) co_return true;
  co_return co_await flush();
}

void answer_lines(Call& call, std::function<awaitable<bool>(LineWriter&)> write) {
  call.response.content_type = "application/x-ndjson";
  call.response.stream = [write = std::move(write)](BodyWriter& body) -> awaitable<bool> {
    LineWriter lines(body);
    try {
      if (!co_await write(lines)) co_return false;
      co_return co_await lines.flush();
    } catch (const std::exception& error) {
      log::error("an answer by lines ends early: {}", error.what());
      co_return false;
    }
  };
}

}  // namespace tabella::net

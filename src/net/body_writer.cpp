#include "net/body_writer.h"

#include <fmt/format.h>

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;

awaitable<bool> BodyWriter::send(std::string& text) {
  if (text.empty()) co_return true;  // a chunk without bytes would be the last
  std::string size;
  if (chunked_) {
    size = fmt::format("{:x}\r\n", text.size());
    text.append("\r\n");
  }
  sent_ += text.size();
  const auto begun = std::chrono::steady_clock::now();
  bool written = co_await connection_.write_all({asio::buffer(size), asio::buffer(text)}, timeout_);
  waited_ += std::chrono::steady_clock::now() - begun;
  if (waited_ > timeout_ + time_to_read(sent_)) written = false;
  text.clear();
  connection_.never_expire();  // until the next piece: whoever makes it answers for its own waits
  co_return written;
}

awaitable<bool> BodyWriter::finish() {
  static constexpr std::string_view kLast = "0\r\n\r\n";
  if (!chunked_) co_return true;
  co_return co_await connection_.write_all({asio::buffer(kLast), asio::const_buffer()}, timeout_);
}

}  // namespace tabella::net

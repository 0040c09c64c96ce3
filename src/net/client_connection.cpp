#include "net/client_connection.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/error.hpp>

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using Stage = ClientError::Stage;
using Done = std::expected<void, ClientError>;

namespace {

constexpr size_t kKeptBuffer = 64 * 1024;

std::string ended_early(const Transport::Error& error) {
  return fmt::format("the connection ended before the answer did: {}", error.message());
}

}  // namespace

ClientConnection::ClientConnection(const asio::any_io_executor& executor,
                                   std::shared_ptr<const ClientSettings> settings)
    : settings_(std::move(settings)), transport_(executor) {}

void ClientConnection::begin(std::shared_ptr<ClientPool> pool,
                             std::chrono::steady_clock::time_point deadline) {
  pool_ = std::move(pool);
  deadline_ = deadline;
  whole_ = false;
}

bool ClientConnection::rest() {
  pool_.reset();
  if (buffer_.size() > kKeptBuffer) std::string().swap(buffer_);
  std::string().swap(unpacked_);
  body_ = {};
  resting_since_ = std::chrono::steady_clock::now();
  return open_ && whole_ && head_.keep_alive && !timed_out_;
}

std::unexpected<ClientError> ClientConnection::failed(Stage stage, std::string message) const {
  if (timed_out_) message = "no answer within the time that it was given";
  return std::unexpected(ClientError{.stage = stage, .timed_out = timed_out_, .message = std::move(message)});
}

awaitable<Done> ClientConnection::open(Endpoints endpoints) {
  const auto& server = settings_->server;
  Transport::Error error = asio::error::host_not_found;
  for (const auto& endpoint : endpoints) {
    if (timed_out_) break;
    std::tie(error) = co_await transport_.connect(endpoint);
    if (!error) break;
  }
  if (error)
    co_return failed(Stage::connecting,
                     fmt::format("cannot connect to {}: {}", server.authority(), error.message()));
  if (settings_->trust) {
    if (const auto insecure = co_await transport_.secure(*settings_->trust, server.host); insecure)
      co_return failed(Stage::connecting,
                       fmt::format("no secure connection to {}: {}", server.authority(), insecure.message()));
  }
  open_ = true;
  co_return Done{};
}

awaitable<Done> ClientConnection::exchange(std::string_view head, std::string_view body) {
  const auto [unsent, sent] = co_await transport_.write({asio::buffer(head), asio::buffer(body)});
  if (unsent) co_return failed(Stage::sending, unsent.message());
  co_return co_await receive();
}

awaitable<Transport::Error> ClientConnection::read_more(size_t wanted) {
  // Room grows only as the answer arrives, whatever length it claims.
  const size_t step = std::min(wanted, std::max(kReadSize, end_));
  if (buffer_.size() - end_ < step) buffer_.resize(end_ + step);
  const auto [error, count] =
      co_await transport_.read_some(asio::buffer(buffer_.data() + end_, buffer_.size() - end_));
  end_ += count;
  co_return error;
}

awaitable<Done> ClientConnection::receive() {
  end_ = 0;
  while (true) {
    const auto result = end_ == 0 ? HeadResult::incomplete : parse_head(unread(), head_);
    if (result == HeadResult::incomplete) {
      const auto stage = end_ == 0 ? Stage::waiting : Stage::receiving;
      if (const auto error = co_await read_more(kReadSize); error)
        co_return failed(stage, ended_early(error));
    } else if (result != HeadResult::complete) {
      co_return failed(Stage::receiving, "the answer is not HTTP");
    } else if (head_.status >= 200) {
      co_return co_await receive_body();
    } else {
      // 100 Continue and the like: the answer is still to come.
      buffer_.erase(0, head_.size);
      end_ -= head_.size;
    }
  }
}

awaitable<Done> ClientConnection::receive_body() {
  const char* before = buffer_.data();
  const bool none = head_.status == 204 || head_.status == 304;
  const size_t length = none ? 0 : head_.content_length.value_or(0);
  if (length > settings_->options.max_body) co_return failed(Stage::receiving, "the answer is too large");
  Done done;
  if (none || head_.content_length)
    done = co_await receive_until(head_.size + length);
  else if (head_.chunked)
    done = co_await receive_chunks();
  else
    done = co_await receive_until_closed();
  if (done && buffer_.data() != before) parse_head(unread(), head_);  // its views follow the buffer
  co_return done;
}

awaitable<Done> ClientConnection::receive_until(size_t whole) {
  while (end_ < whole)
    if (const auto error = co_await read_more(whole - end_); error)
      co_return failed(Stage::receiving, ended_early(error));
  body_ = unread().substr(head_.size, whole - head_.size);
  whole_ = end_ == whole;
  co_return Done{};
}

awaitable<Done> ClientConnection::receive_chunks() {
  ChunkedBody chunked(settings_->options.max_body);
  while (true) {
    auto rest = unread().substr(head_.size);
    const auto state = chunked.feed(rest);
    buffer_.erase(head_.size, end_ - head_.size - rest.size());
    end_ = head_.size + rest.size();
    if (state == ChunkedBody::State::complete) break;
    if (state == ChunkedBody::State::too_large) co_return failed(Stage::receiving, "the answer is too large");
    if (state == ChunkedBody::State::malformed) co_return failed(Stage::receiving, "the answer is not HTTP");
    if (const auto error = co_await read_more(kReadSize); error)
      co_return failed(Stage::receiving, ended_early(error));
  }
  unpacked_ = std::move(chunked.body());
  body_ = unpacked_;
  whole_ = end_ == head_.size;
  co_return Done{};
}

awaitable<Done> ClientConnection::receive_until_closed() {
  while (true) {
    const auto error = co_await read_more(kReadSize);
    if (error == asio::error::eof) break;
    if (error) co_return failed(Stage::receiving, ended_early(error));
    if (end_ > settings_->options.max_body + head_.size)
      co_return failed(Stage::receiving, "the answer is too large");
  }
  body_ = unread().substr(head_.size);
  co_return Done{};
}

}  // namespace tabella::net

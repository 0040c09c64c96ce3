#include "net/client_connection.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/error.hpp>

#include "net/address_rules.h"

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
  if (const auto* rules = settings_->options.rules) {
    auto permitted = rules->permitted(settings_->next_hop().host, std::move(endpoints));
    if (!permitted)
      co_return std::unexpected(ClientError{.refused = true, .message = std::move(permitted).error()});
    endpoints = std::move(*permitted);
  }
  Transport::Error error = asio::error::host_not_found;
  for (const auto& endpoint : endpoints) {
    if (timed_out_) break;
    std::tie(error) = co_await transport_.connect(endpoint);
    if (!error) break;
  }
  if (error)
    co_return failed(Stage::connecting, fmt::format("cannot connect to {}: {}",
                                                    settings_->next_hop().authority(), error.message()));
  if (const auto& tunnel = settings_->options.tunnel)
    if (auto entered = co_await enter_tunnel(*tunnel); !entered) co_return entered;
  if (server.tls) {
    if (const auto insecure = co_await transport_.secure(*settings_->options.trust, server.host); insecure)
      co_return failed(Stage::connecting,
                       fmt::format("no secure connection to {}: {}", server.authority(), insecure.message()));
  }
  open_ = true;
  co_return Done{};
}

awaitable<Done> ClientConnection::enter_tunnel(const Tunnel& tunnel) {
  const auto& server = settings_->server;
  auto head = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", server.host_and_port());
  if (!tunnel.authorization.empty()) head += fmt::format("Proxy-Authorization: {}\r\n", tunnel.authorization);
  head += "\r\n";
  const auto wrong = [&](std::string_view what) {
    return failed(Stage::connecting, fmt::format("the proxy {} {}", tunnel.proxy.authority(), what));
  };
  const auto [unsent, sent] = co_await transport_.write({asio::buffer(head), asio::const_buffer()});
  if (unsent) co_return wrong(unsent.message());
  if (const auto answered = co_await receive_head(); !answered)
    co_return wrong("did not answer: " + answered.error().message);
  if (head_.status >= 300)
    co_return wrong(fmt::format("does not connect us to {}: it answered {}", server.host, head_.status));
  // Who speaks first in the tunnel is us.
  if (end_ != head_.size) co_return wrong("sent more than an answer");
  co_return Done{};
}

awaitable<Done> ClientConnection::exchange(std::string_view head, std::string_view body, size_t max_body) {
  max_body_ = std::min(max_body, settings_->options.max_body);
  asked_for_head_ = head.starts_with("HEAD ");
  const auto [unsent, sent] = co_await transport_.write({asio::buffer(head), asio::buffer(body)});
  if (unsent) co_return failed(Stage::sending, unsent.message());
  if (auto received = co_await receive_head(); !received) co_return received;
  co_return co_await receive_body();
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

awaitable<Done> ClientConnection::receive_head() {
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
      co_return Done{};
    } else {
      // 100 Continue and the like: the answer is still to come.
      buffer_.erase(0, head_.size);
      end_ -= head_.size;
    }
  }
}

awaitable<Done> ClientConnection::receive_body() {
  const char* before = buffer_.data();
  const bool none = head_.status == 204 || head_.status == 304 || asked_for_head_;
  const size_t length = none ? 0 : head_.content_length.value_or(0);
  if (length > max_body_) co_return failed(Stage::receiving, "the answer is too large");
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
  ChunkedBody chunked(max_body_);
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
  Transport::Error error;
  while (!error && end_ <= head_.size + max_body_) error = co_await read_more(kReadSize);
  if (end_ > head_.size + max_body_) co_return failed(Stage::receiving, "the answer is too large");
  if (error != asio::error::eof) co_return failed(Stage::receiving, ended_early(error));
  body_ = unread().substr(head_.size);
  co_return Done{};
}

}  // namespace tabella::net

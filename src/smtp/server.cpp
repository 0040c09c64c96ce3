#include "smtp/server.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::smtp {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr std::chrono::seconds kWriteTimeout{60};

class ConnectionChannel final : public Channel {
 public:
  ConnectionChannel(net::Connection& connection, const net::TlsIdentity* identity, LinkSpeed speed)
      : connection_(connection), identity_(identity), speed_(speed) {}

  awaitable<size_t> read_some(asio::mutable_buffer room) override {
    const auto [error, n] = co_await connection_.transport().read_some(room);
    if (error) co_return 0;
    if (speed_) co_await travel(n);
    co_return n;
  }
  awaitable<bool> write(std::string_view bytes) override {
    if (speed_) co_await travel(bytes.size());
    co_return co_await connection_.write_all({asio::buffer(bytes), asio::const_buffer()}, kWriteTimeout);
  }
  awaitable<bool> start_tls() override {
    const bool failed = static_cast<bool>(co_await connection_.transport().secure(*identity_));
    co_return !failed;
  }
  bool can_start_tls() const override { return identity_ != nullptr; }
  bool is_secure() const override { return connection_.transport().is_secure(); }
  void expire_in(std::chrono::milliseconds timeout) override { connection_.expire_in(timeout); }
  void set_holding(bool holding) override { connection_.set_holding(holding); }

 private:
  // The time that so many bytes take on a slow line.
  awaitable<void> travel(size_t bytes) {
    constexpr std::chrono::milliseconds kSlice{100};
    asio::steady_timer timer(co_await asio::this_coro::executor);
    const auto length =
        std::chrono::microseconds(static_cast<int64_t>(1e6 * static_cast<double>(bytes) / *speed_));
    const auto until = std::chrono::steady_clock::now() + length;
    connection_.never_expire();
    while (!connection_.draining() && std::chrono::steady_clock::now() < until) {
      timer.expires_at(std::min(until, std::chrono::steady_clock::now() + kSlice));
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  net::Connection& connection_;
  const net::TlsIdentity* identity_;
  const LinkSpeed speed_;
};

// Sessions count as idle while they wait for a command; a host that is at work keeps its session.
class BusyHost final : public Host {
 public:
  BusyHost(Host& host, net::Connection& connection) : host_(host), connection_(connection) {}
  bool takes_connection() override { return host_.takes_connection(); }
  bool goes_on() override { return !connection_.draining() && host_.goes_on(); }
  std::optional<Reply> refuse_sender(const Envelope& e) override { return host_.refuse_sender(e); }
  std::optional<Reply> refuse_recipient(const Envelope& e, const std::string& address) override {
    return host_.refuse_recipient(e, address);
  }
  std::optional<Reply> refuse_message(const Envelope& e) override { return host_.refuse_message(e); }
  std::optional<Reply> refuse_login(const Credentials& c) override { return host_.refuse_login(c); }
  awaitable<Verdict> may_log_in(Credentials credentials) override {
    return host_.may_log_in(std::move(credentials));
  }
  awaitable<Reply> take(Envelope envelope) override {
    connection_.never_expire();
    connection_.set_idle(false);
    auto reply = co_await host_.take(std::move(envelope));
    connection_.set_idle(true);
    co_return reply;
  }

 private:
  Host& host_;
  net::Connection& connection_;
};

}  // namespace

struct Server::Impl {
  ServerOptions options;
  const net::TlsIdentity* identity;
  Accept accept;
  std::atomic<size_t> own_memory{0};
  std::optional<net::Listener> listener;

  std::atomic<size_t>& memory_used() {
    return options.listen.limits ? options.listen.limits->memory_used : own_memory;
  }

  awaitable<void> serve(net::Connection& connection) {
    if (options.tls_from_the_start) {
      connection.expire_in(options.session.idle);
      if (co_await connection.transport().secure(*identity)) co_return;
    }
    auto accepted = accept();
    ConnectionChannel channel(connection, identity, accepted.speed);
    BusyHost host(*accepted.host, connection);
    Session session(channel, host, options.session, memory_used(), connection.transport().peer());
    co_await session.run();
    // The last reply is to arrive, even if the client is still talking.
    co_await connection.linger();
  }
};

Server::Server(net::IoThreads& threads, ServerOptions options, const net::TlsIdentity* identity,
               Accept accept)
    : impl_(new Impl{.options = std::move(options), .identity = identity, .accept = std::move(accept)}) {
  if (const auto* limits = impl_->options.listen.limits) impl_->options.session.budget = limits->memory;
  // Under TLS from the start there is nothing to be said before the handshake.
  impl_->options.listen.refusal =
      impl_->options.tls_from_the_start ? "" : "421 4.3.2 too many sessions; try again later\r\n";
  impl_->listener.emplace(threads, impl_->options.listen, [impl = impl_.get()](net::Connection& connection) {
    return impl->serve(connection);
  });
}
Server::~Server() = default;

uint16_t Server::port() const { return impl_->listener->port(); }
size_t Server::connections() const { return impl_->listener->connections(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->listener->stop(grace); }

}  // namespace tabella::smtp

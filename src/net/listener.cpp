#include "net/listener.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_set>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.h"
#include "net/by_value.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

namespace {

tcp::endpoint resolve(asio::io_context& context, const std::string& host, uint16_t port) {
  boost::system::error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty())
    throw std::runtime_error(fmt::format("the address {} is not known: {}", host, error.message()));
  return found.begin()->endpoint();
}

}  // namespace

// What the connections of one thread share; touched on that thread only.
struct ListenerThread {
  Listener::Impl* listener = nullptr;
  std::unordered_set<Connection*> connections;
  SteadyClock::time_point now = SteadyClock::now();  // of the last sweep: good enough for timeouts

  void close_what_is_over();
  void close_longest_waiting();
};

struct Listener::Impl : std::enable_shared_from_this<Listener::Impl> {
  Impl(IoThreads& t, ListenOptions o, Serve s)
      : threads(t),
        options(std::move(o)),
        serve(std::move(s)),
        acceptor(std::in_place, t.at(0)),
        states(t.size()) {
    for (auto& state : states) state.listener = this;
  }

  void listen();
  awaitable<void> accept_loop();
  awaitable<void> sweep(size_t thread);
  void start(tcp::socket socket, size_t thread);
  void refuse(tcp::socket socket) const;
  bool is_full() const {
    return connections >= options.max_connections ||
           (options.limits && options.limits->connections_are_full());
  }

  IoThreads& threads;
  const ListenOptions options;
  const Serve serve;
  std::optional<tcp::acceptor> acceptor;  // until stop(): it must go before its thread does
  std::vector<ListenerThread> states;
  std::atomic<size_t> connections{0};
  std::atomic<bool> draining{false};  // nothing new
  std::atomic<bool> closing{false};   // nothing old either
  std::atomic<size_t> tasks{0};       // the accept loop and the sweeps; a sweep outlives its connections
};

Connection::Connection(ListenerThread& thread, tcp::socket socket)
    : thread_(thread), transport_(std::move(socket)) {
  thread_.connections.insert(this);
  ++thread_.listener->connections;
  if (auto* limits = thread_.listener->options.limits) ++limits->connections;
}

Connection::~Connection() {
  thread_.connections.erase(this);
  --thread_.listener->connections;
  if (auto* limits = thread_.listener->options.limits) --limits->connections;
}

void Connection::set_holding(bool holding) {
  holding_since_ = holding ? std::optional(thread_.now) : std::nullopt;
}

void Connection::set_waiting(bool waiting) {
  waiting_since_ = waiting ? std::optional(thread_.now) : std::nullopt;
}

void Connection::expire_in(std::chrono::milliseconds timeout) { deadline_ = thread_.now + timeout; }
bool Connection::draining() const { return thread_.listener->draining; }

awaitable<bool> Connection::write_all(std::array<asio::const_buffer, 2> buffers,
                                      std::chrono::milliseconds timeout) {
  size_t left = asio::buffer_size(buffers);
  const auto at_last = thread_.now + timeout + time_to_read(left);
  while (left > 0) {
    expire_in(timeout);
    deadline_ = std::min(*deadline_, at_last);
    set_holding(true);
    const auto [error, n] = co_await transport_.write_some(buffers);
    set_holding(false);
    if (error) co_return false;
    left -= n;
    for (size_t skip = n; auto& buffer : buffers) {
      const size_t step = std::min(skip, buffer.size());
      buffer += step;
      skip -= step;
    }
  }
  co_return true;
}

awaitable<void> Connection::linger() {
  constexpr size_t kMostBytes = 64u << 20;
  transport_.finish_sending();
  expire_in(std::chrono::seconds(5));
  std::array<char, 16 * 1024> sink;  // NOLINT: filled by the read
  for (size_t drained = 0; drained < kMostBytes;) {
    const auto [error, n] = co_await transport_.read_some(asio::buffer(sink));
    if (error) co_return;
    drained += n;
  }
}

void ListenerThread::close_what_is_over() {
  constexpr std::chrono::seconds kPatience{5};
  now = SteadyClock::now();
  const auto* limits = listener->options.limits;
  const bool short_of_memory = limits && limits->memory_is_short();
  for (auto* connection : connections) {
    const bool unread = connection->holding_since_ && now - *connection->holding_since_ > kPatience;
    const bool expired =
        (connection->deadline_ && now > *connection->deadline_) || (short_of_memory && unread);
    if (expired || (listener->draining && connection->idle_) || listener->closing)
      connection->transport_.close();
  }
}

// Some of them at a time, so that looking for them costs little.
void ListenerThread::close_longest_waiting() {
  constexpr size_t kShare = 64;
  std::vector<Connection*> waiting;
  for (auto* connection : connections)
    if (connection->waiting_since_) waiting.push_back(connection);
  if (waiting.empty()) return;
  const auto some = waiting.begin() + static_cast<ptrdiff_t>(1 + waiting.size() / kShare) - 1;
  std::ranges::nth_element(waiting, some, {}, [](const auto* c) { return *c->waiting_since_; });
  for (auto at = waiting.begin(); at <= some; ++at) (*at)->transport_.close();
}

void Listener::Impl::listen() {
  const auto endpoint = resolve(threads.at(0), options.host, options.port);
  boost::system::error_code error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(4096, error);
  if (!error) return;
  if (error == asio::error::address_in_use)
    throw std::runtime_error(
        fmt::format("port {} on {} is in use; stop the program that has it or choose another port",
                    options.port, options.host));
  throw std::runtime_error(
      fmt::format("cannot listen on {}:{}: {}", options.host, options.port, error.message()));
}

awaitable<void> Listener::Impl::accept_loop() {
  size_t next = 0;
  asio::steady_timer pause(threads.at(0));
  while (!draining) {
    if (is_full() && !options.refusal) {
      for (size_t i = 0; i < threads.size(); ++i)
        asio::post(threads.at(i),
                   [self = shared_from_this(), i] { self->states[i].close_longest_waiting(); });
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(kByValue);
      continue;
    }
    const size_t thread = next++ % threads.size();
    auto [error, socket] = co_await acceptor->async_accept(threads.at(thread), kByValue);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of descriptors, most likely: those that end will make room.
      log::warning("cannot accept a connection: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(kByValue);
      continue;
    }
    if (options.refusal && is_full()) {
      refuse(std::move(socket));
      continue;
    }
    asio::post(threads.at(thread), [self = shared_from_this(), thread, s = std::move(socket)]() mutable {
      self->start(std::move(s), thread);
    });
  }
}

// A few bytes fit into the buffer of a socket that has had none yet: nothing is waited for.
void Listener::Impl::refuse(tcp::socket socket) const {
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  if (!options.refusal->empty()) socket.send(asio::buffer(*options.refusal), 0, ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

void Listener::Impl::start(tcp::socket socket, size_t thread) {
  if (draining) return;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto connection = std::make_shared<Connection>(states[thread], std::move(socket));
  asio::co_spawn(
      threads.at(thread),
      [self = shared_from_this(), connection]() -> awaitable<void> {
        co_await self->serve(*connection);
        connection->transport().close();
      },
      asio::detached);
}

// Closes what has taken too long. One timer per thread instead of one per wait. Ends when the listener is
// stopping and the last connection is gone.
awaitable<void> Listener::Impl::sweep(size_t thread) {
  asio::steady_timer timer(threads.at(thread));
  auto& state = states[thread];
  while (!draining || !state.connections.empty()) {
    state.close_what_is_over();
    timer.expires_after(draining ? std::chrono::milliseconds(5) : std::chrono::milliseconds(250));
    co_await timer.async_wait(kByValue);
  }
}

Listener::Listener(IoThreads& threads, ListenOptions options, Serve serve)
    : impl_(std::make_shared<Impl>(threads, std::move(options), std::move(serve))) {
  impl_->listen();
  const auto spawn = [&](size_t thread, auto task) {
    ++impl_->tasks;
    asio::co_spawn(threads.at(thread), std::move(task),
                   [impl = impl_](const std::exception_ptr&) { --impl->tasks; });
  };
  spawn(0, [impl = impl_.get()] { return impl->accept_loop(); });
  for (size_t i = 0; i < threads.size(); ++i) spawn(i, [impl = impl_.get(), i] { return impl->sweep(i); });
}

// Its connections are served by what its owner has: they must not outlive it.
Listener::~Listener() {
  if (impl_->acceptor) stop(std::chrono::milliseconds(0));
}

uint16_t Listener::port() const { return impl_->acceptor->local_endpoint().port(); }
size_t Listener::connections() const { return impl_->connections; }

void Listener::stop(std::chrono::milliseconds grace) {
  impl_->draining = true;
  asio::post(impl_->threads.at(0), [impl = impl_] {
    boost::system::error_code ignored;
    impl->acceptor->close(ignored);
  });
  // Sockets and timers must be gone before their threads are: the wait is for all of them.
  const auto until = SteadyClock::now() + grace;
  while (impl_->tasks > 0) {
    if (SteadyClock::now() > until) impl_->closing = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  impl_->acceptor.reset();
}

}  // namespace tabella::net

#include "net/server.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "base/log.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto kByValue = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadSize = 16 * 1024;
constexpr size_t kCopiedBody = 16 * 1024;
// Buffers up to this size are a connection's own; beyond, they are counted.
constexpr size_t kFreeBuffer = 64 * 1024;

class Connection;

// What the connections of one thread share; touched on that thread only.
struct ThreadState {
  std::unordered_set<Connection*> connections;
  SteadyClock::time_point now = SteadyClock::now();  // of the last sweep: good enough for timeouts
};

// Takes its part of the budget as a buffer grows and gives it back when it shrinks.
class BudgetShare {
 public:
  BudgetShare(std::atomic<size_t>& used, size_t limit) : used_(used), limit_(limit) {}
  ~BudgetShare() { used_ -= mine_; }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  bool resize(size_t bytes) {
    const size_t counted = bytes > kFreeBuffer ? bytes : 0;
    if (counted > mine_ && used_ + (counted - mine_) > limit_) return false;
    used_ += counted - mine_;
    mine_ = counted;
    return true;
  }

 private:
  std::atomic<size_t>& used_;
  const size_t limit_;
  size_t mine_ = 0;
};

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(IoThreads& t, ServerOptions o, Handler h)
      : threads(t),
        options(std::move(o)),
        handler(std::move(h)),
        acceptor(std::in_place, t.at(0)),
        states(t.size()) {}

  void listen();
  awaitable<void> accept_loop();
  awaitable<void> sweep(size_t thread);
  void start(tcp::socket socket, size_t thread);

  IoThreads& threads;
  const ServerOptions options;
  const Handler handler;
  std::optional<tcp::acceptor> acceptor;  // until stop(): it must go before its thread does
  std::optional<asio::ssl::context> tls;
  std::vector<ThreadState> states;
  std::atomic<size_t> connections{0};
  std::atomic<size_t> budget_used{0};
  std::atomic<bool> draining{false};  // no new requests
  std::atomic<bool> closing{false};   // no old ones either
  std::atomic<size_t> tasks{0};       // the accept loop and the sweeps; a sweep outlives its connections
};

namespace {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpServer::Impl& server, ThreadState& state, tcp::socket socket, asio::ssl::context* tls)
      : server_(server), state_(state), budget_(server.budget_used, server.options.body_budget) {
    if (tls)
      tls_.emplace(std::move(socket), *tls);
    else
      plain_.emplace(std::move(socket));
    state_.connections.insert(this);
    ++server_.connections;
  }
  ~Connection() {
    state_.connections.erase(this);
    --server_.connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  awaitable<void> run() {
    if (tls_) {
      expire_in(server_.options.head_timeout);
      const auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::server, kByValue);
      if (error) co_return;
    }
    while (co_await serve_one()) {
    }
    close();
  }

  bool expired(SteadyClock::time_point now) const { return deadline_ && now > *deadline_; }
  bool idle() const { return idle_; }
  void close() {
    boost::system::error_code ignored;
    socket().close(ignored);
  }

 private:
  tcp::socket& socket() { return tls_ ? tls_->next_layer() : *plain_; }

  void expire_in(std::chrono::seconds timeout) { deadline_ = state_.now + timeout; }

  // Reads a request, lets the handler answer, writes. False when the connection is to end.
  awaitable<bool> serve_one() {
    RequestHead& head = request_;
    if (!co_await read_head(head)) co_return false;
    std::string decoded;
    size_t request_size = head.size;
    if (head.chunked) {
      if (!co_await read_chunked(head, decoded)) co_return false;
    } else if (head.content_length > 0) {
      if (!co_await read_body(head)) co_return false;
      request_size += head.content_length;
    }
    deadline_.reset();  // the handler answers for its own waits
    response_.clear();
    co_await server_.handler(head.request, response_);
    if (head.request.method == "HEAD") response_.body.clear();
    const bool keep_alive = head.request.keep_alive && !server_.draining;
    const bool written = co_await write(response_, !keep_alive);
    if (response_.body.capacity() > kFreeBuffer) response_ = {};
    consume(request_size);
    co_return written&& keep_alive;
  }

  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

  awaitable<bool> read_head(RequestHead& head) {
    // Between requests a connection may rest; once a request has begun it must come to an end.
    idle_ = unread().empty();
    expire_in(idle_ ? server_.options.idle_timeout : server_.options.head_timeout);
    while (true) {
      const auto result = unread().empty() ? HeadResult::incomplete : parse_head(unread(), head);
      if (result == HeadResult::complete) {
        idle_ = false;
        co_return true;
      }
      if (result != HeadResult::incomplete) {
        co_await refuse(status_of(result));
        co_return false;
      }
      const bool first = unread().empty();
      if (!co_await read_more(kReadSize)) co_return false;
      if (first) expire_in(server_.options.head_timeout);
      idle_ = false;
    }
  }

  static int status_of(HeadResult result) {
    if (result == HeadResult::unsupported_version) return 505;
    return result == HeadResult::unsupported_encoding ? 501 : 400;
  }

  awaitable<bool> read_body(RequestHead& head) {
    if (head.content_length > server_.options.max_body) {
      co_await refuse(413);
      co_return false;
    }
    const size_t whole = head.size + head.content_length;
    const char* before = buffer_.data() + begin_;
    if (unread().size() < whole && head.expects_continue && !co_await send_continue()) co_return false;
    expire_in(time_for_body(head.content_length));
    while (unread().size() < whole) {
      if (!co_await read_more(whole - unread().size())) co_return false;
    }
    rebase(head.request, before);
    head.request.body = unread().substr(head.size, head.content_length);
    co_return true;
  }

  // The head stays at the front of the buffer; what follows it is taken in and dropped as it comes.
  awaitable<bool> read_chunked(RequestHead& head, std::string& decoded) {
    const char* before = buffer_.data() + begin_;
    if (head.expects_continue && !co_await send_continue()) co_return false;
    ChunkedBody chunked(server_.options.max_body);
    expire_in(time_for_body(server_.options.max_body));
    while (true) {
      auto rest = unread().substr(head.size);
      const auto state = chunked.feed(rest);
      std::memmove(buffer_.data() + begin_ + head.size, rest.data(), rest.size());
      end_ = begin_ + head.size + rest.size();
      if (state == ChunkedBody::State::complete) {
        rebase(head.request, before);
        decoded = std::move(chunked.body());
        head.request.body = decoded;
        co_return true;
      }
      if (state != ChunkedBody::State::incomplete) {
        co_await refuse(state == ChunkedBody::State::too_large ? 413 : 400);
        co_return false;
      }
      if (!budget_.resize(buffer_.size() + chunked.body().capacity())) {
        co_await refuse(503);
        co_return false;
      }
      if (!co_await read_more(kReadSize)) co_return false;
    }
  }

  // A slow line has its time; a sender that only drips does not.
  std::chrono::seconds time_for_body(size_t bytes) const {
    constexpr size_t kSlowest = 64 * 1024;  // bytes a second
    return server_.options.body_timeout + std::chrono::seconds(bytes / kSlowest);
  }

  // Views of the head move with the buffer.
  void rebase(HttpRequest& request, const char* before) {
    const ptrdiff_t moved = buffer_.data() + begin_ - before;
    if (moved == 0) return;
    const auto move = [moved](std::string_view& view) { view = {view.data() + moved, view.size()}; };
    move(request.method);
    move(request.target);
    for (auto& [name, value] : request.headers) {
      move(name);
      move(value);
    }
  }

  awaitable<bool> send_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    co_return co_await write_all(asio::buffer(kContinue));
  }

  // Room for what a request may hold grows only as its bytes arrive.
  awaitable<bool> read_more(size_t wanted) {
    const size_t step = std::min(wanted, std::max(kReadSize, unread().size()));
    if (buffer_.size() - end_ < step) {
      if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      if (buffer_.size() - end_ < step) {
        if (!budget_.resize(end_ + step)) {
          co_await refuse(503);
          co_return false;
        }
        buffer_.resize(end_ + step);
      }
    }
    const auto into = asio::buffer(buffer_.data() + end_, buffer_.size() - end_);
    const auto [error, n] = tls_ ? co_await tls_->async_read_some(into, kByValue)
                                 : co_await plain_->async_read_some(into, kByValue);
    if (error) co_return false;
    end_ += n;
    co_return true;
  }

  void consume(size_t n) {
    begin_ += n;
    if (begin_ < end_) return;
    begin_ = end_ = 0;
    if (buffer_.size() > kFreeBuffer) {
      buffer_ = {};
      budget_.resize(0);
    }
  }

  // Each piece that goes out renews the deadline: a slow reader may take its time over a large answer.
  template <class Buffers>
  awaitable<bool> write_all(Buffers buffers) {
    std::vector<asio::const_buffer> rest;
    size_t left = asio::buffer_size(buffers);
    while (true) {
      expire_in(server_.options.write_timeout);
      const auto [error, n] = rest.empty() ? co_await write_some(buffers) : co_await write_some(rest);
      if (error) co_return false;
      left -= n;
      if (left == 0) co_return true;
      if (rest.empty()) rest.assign(asio::buffer_sequence_begin(buffers), asio::buffer_sequence_end(buffers));
      for (size_t skip = n; auto& buffer : rest) {
        const size_t step = std::min(skip, buffer.size());
        buffer += step;
        skip -= step;
      }
    }
  }

  template <class Buffers>
  awaitable<std::tuple<boost::system::error_code, size_t>> write_some(const Buffers& buffers) {
    if (tls_) co_return co_await tls_->async_write_some(buffers, kByValue);
    co_return co_await plain_->async_write_some(buffers, kByValue);
  }

  awaitable<bool> write(const HttpResponse& response, bool close) {
    head_.clear();
    append_response_head(head_, response, close);
    // A small answer goes out in one piece: copying it is cheaper than gathering.
    if (response.body.size() <= kCopiedBody) {
      head_.append(response.body);
      co_return co_await write_all(asio::buffer(head_));
    }
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head_), asio::buffer(response.body)};
    co_return co_await write_all(buffers);
  }

  // Answers a request that is not going to be read to its end, and takes in what is still coming for a while:
  // a reset would take the answer away from the client.
  awaitable<void> refuse(int status) {
    HttpResponse response;
    response.status = status;
    if (!co_await write(response, true)) co_return;
    boost::system::error_code ignored;
    if (plain_) plain_->shutdown(tcp::socket::shutdown_send, ignored);
    constexpr size_t kMaxLinger = 64u << 20;
    deadline_ = state_.now + std::chrono::seconds(5);
    std::array<char, kReadSize> sink;  // NOLINT: filled by the read
    for (size_t drained = 0; drained < kMaxLinger;) {
      const auto [error, n] = tls_ ? co_await tls_->async_read_some(asio::buffer(sink), kByValue)
                                   : co_await plain_->async_read_some(asio::buffer(sink), kByValue);
      if (error) co_return;
      drained += n;
    }
  }

  HttpServer::Impl& server_;
  ThreadState& state_;
  std::optional<tcp::socket> plain_;
  std::optional<asio::ssl::stream<tcp::socket>> tls_;
  BudgetShare budget_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  RequestHead request_;
  HttpResponse response_;
  std::string head_;
  std::optional<SteadyClock::time_point> deadline_;
  bool idle_ = true;
};

tcp::endpoint resolve(asio::io_context& context, const std::string& host, uint16_t port) {
  boost::system::error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty())
    throw std::runtime_error(fmt::format("the address {} is not known: {}", host, error.message()));
  return found.begin()->endpoint();
}

asio::ssl::context make_tls(const TlsFiles& files) {
  try {
    asio::ssl::context context(asio::ssl::context::tls_server);
    context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                        asio::ssl::context::no_sslv3);
    context.use_certificate_chain_file(files.certificate);
    context.use_private_key_file(files.key, asio::ssl::context::pem);
    return context;
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(fmt::format("the TLS certificate {} or its key {} cannot be used: {}",
                                         files.certificate, files.key, error.code().message()));
  }
}

}  // namespace

void HttpServer::Impl::listen() {
  if (options.tls) tls.emplace(make_tls(*options.tls));
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

awaitable<void> HttpServer::Impl::accept_loop() {
  size_t next = 0;
  asio::steady_timer pause(threads.at(0));
  while (!draining) {
    if (connections >= options.max_connections) {
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
    asio::post(threads.at(thread), [self = shared_from_this(), thread, s = std::move(socket)]() mutable {
      self->start(std::move(s), thread);
    });
  }
}

void HttpServer::Impl::start(tcp::socket socket, size_t thread) {
  if (draining) return;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto connection =
      std::make_shared<Connection>(*this, states[thread], std::move(socket), tls ? &*tls : nullptr);
  asio::co_spawn(
      threads.at(thread),
      [self = shared_from_this(), connection]() -> awaitable<void> { co_await connection->run(); },
      asio::detached);
}

// Closes what has taken too long. One timer per thread instead of one per wait. Ends when the server is
// stopping and the last connection is gone.
awaitable<void> HttpServer::Impl::sweep(size_t thread) {
  asio::steady_timer timer(threads.at(thread));
  auto& state = states[thread];
  while (!draining || !state.connections.empty()) {
    state.now = SteadyClock::now();
    for (auto* connection : state.connections)
      if (connection->expired(state.now) || (draining && connection->idle()) || closing) connection->close();
    timer.expires_after(draining ? std::chrono::milliseconds(5) : std::chrono::milliseconds(250));
    co_await timer.async_wait(kByValue);
  }
}

HttpServer::HttpServer(IoThreads& threads, ServerOptions options, Handler handler)
    : impl_(std::make_shared<Impl>(threads, std::move(options), std::move(handler))) {
  impl_->listen();
  const auto spawn = [&](size_t thread, auto task) {
    ++impl_->tasks;
    asio::co_spawn(threads.at(thread), std::move(task),
                   [impl = impl_](const std::exception_ptr&) { --impl->tasks; });
  };
  spawn(0, [impl = impl_.get()] { return impl->accept_loop(); });
  for (size_t i = 0; i < threads.size(); ++i) spawn(i, [impl = impl_.get(), i] { return impl->sweep(i); });
}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->acceptor->local_endpoint().port(); }

void HttpServer::stop(std::chrono::milliseconds grace) {
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

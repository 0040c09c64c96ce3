#include "net/client.h"

#include <sys/socket.h>
#include <atomic>
#include <deque>
#include <map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;
using boost::system::error_code;
using Stage = ClientError::Stage;

namespace {

constexpr auto kByValue = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadSize = 16 * 1024;
// A connection that was used so shortly ago is taken to be alive without a look.
constexpr std::chrono::milliseconds kFresh{250};
constexpr std::chrono::milliseconds kSweep{20};

class Pool;

}  // namespace

// What all threads share; outlives the client for as long as a reply is looked at.
struct HttpClient::Shared {
  Shared(Url s, ClientOptions o) : server(std::move(s)), options(std::move(o)) {
    if (server.tls) tls.emplace(make_tls(options.ca_file));
  }

  static asio::ssl::context make_tls(const std::string& ca_file) {
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                        asio::ssl::context::no_sslv3);
    context.set_verify_mode(asio::ssl::verify_peer);
    try {
      if (ca_file.empty())
        context.set_default_verify_paths();
      else
        context.load_verify_file(ca_file);
    } catch (const boost::system::system_error& error) {
      throw std::runtime_error(
          fmt::format("the certificates in {} cannot be used: {}", ca_file, error.code().message()));
    }
    return context;
  }

  const Url server;
  const ClientOptions options;
  mutable std::optional<asio::ssl::context> tls;  // thread-safe once it is set up
};

// One connection, and the exchange that is under way on it. On one thread.
class ClientConnection {
 public:
  ClientConnection(std::shared_ptr<Pool> pool, const asio::any_io_executor& executor,
                   std::shared_ptr<const HttpClient::Shared> shared);

  awaitable<std::expected<void, ClientError>> exchange(std::string_view head, std::string_view body);

  // From the pool's sweep.
  void expire() {
    timed_out_ = true;
    abort();
  }
  void abort() {
    error_code ignored;
    resolver_.cancel();
    socket().close(ignored);
  }

  // Whether it can be sent another request.
  bool reusable() const { return open_ && whole_ && head_.keep_alive; }
  // Whether the other side has not closed it meanwhile.
  bool alive() {
    char byte = 0;
    return ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  const ResponseHead& head() const { return head_; }
  std::string_view body() const { return body_; }

  std::shared_ptr<Pool> pool;
  SteadyClock::time_point deadline;
  SteadyClock::time_point rested;  // since when nobody uses it

 private:
  tcp::socket& socket() { return tls_ ? tls_->next_layer() : *plain_; }
  std::string_view unread() const { return {buffer_.data(), end_}; }

  awaitable<std::expected<void, std::string>> open();
  awaitable<error_code> secure();
  awaitable<std::expected<void, ClientError>> receive();
  awaitable<std::expected<void, ClientError>> receive_body();
  awaitable<error_code> read_more(size_t wanted);

  std::unexpected<ClientError> failed(Stage stage, std::string message) const {
    return std::unexpected(ClientError{
        .stage = stage,
        .timed_out = timed_out_,
        .message = timed_out_ ? "no answer within the time that it was given" : std::move(message)});
  }

  std::shared_ptr<const HttpClient::Shared> shared_;
  tcp::resolver resolver_;
  std::optional<tcp::socket> plain_;
  std::optional<asio::ssl::stream<tcp::socket>> tls_;
  bool open_ = false;
  bool timed_out_ = false;
  bool whole_ = false;  // the response was read to its end, and no more
  ResponseHead head_;
  std::string buffer_;
  size_t end_ = 0;        // of what was read into the buffer
  std::string unpacked_;  // the body, if it came in chunks
  std::string_view body_;
};

namespace {

// The connections of one client on one io_context.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(std::shared_ptr<const HttpClient::Shared> shared, asio::any_io_executor executor)
      : shared_(std::move(shared)), executor_(std::move(executor)), sweep_(executor_) {}

  awaitable<std::shared_ptr<ClientConnection>> take(SteadyClock::time_point deadline) {
    while (active_.size() >= shared_->options.max_connections) {
      asio::steady_timer turn(executor_, deadline);
      waiting_.push_back(&turn);
      // Cancelled by whoever makes room, by the deadline or by the caller's end.
      const Waiting entry(waiting_, &turn);
      co_await turn.async_wait(kByValue);
      if (SteadyClock::now() >= deadline) co_return nullptr;
    }
    auto connection = rested();
    if (!connection) connection = std::make_shared<ClientConnection>(shared_from_this(), executor_, shared_);
    connection->deadline = deadline;
    active_.insert(connection.get());
    if (!sweeping_) begin_sweep();
    co_return connection;
  }

  void give_back(std::shared_ptr<ClientConnection> connection) {
    active_.erase(connection.get());
    connection->pool.reset();
    if (connection->reusable()) {
      connection->rested = SteadyClock::now();
      idle_.push_back(std::move(connection));
    }
    if (!waiting_.empty()) waiting_.front()->cancel();
    if (active_.empty()) {
      sweeping_ = false;
      sweep_.cancel();
    }
  }

  void shut_down() {
    idle_.clear();
    sweep_.cancel();
  }

 private:
  // Leaves the queue however the wait ends.
  class Waiting {
   public:
    Waiting(std::deque<asio::steady_timer*>& queue, asio::steady_timer* timer)
        : queue_(queue), timer_(timer) {}
    ~Waiting() { std::erase(queue_, timer_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::deque<asio::steady_timer*>& queue_;
    asio::steady_timer* timer_;
  };

  std::shared_ptr<ClientConnection> rested() {
    const auto now = SteadyClock::now();
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());  // the last used: the others may rest and go
      idle_.pop_back();
      const auto since = now - connection->rested;
      if (since > shared_->options.idle || (since > kFresh && !connection->alive())) continue;
      connection->pool = shared_from_this();
      return connection;
    }
    return nullptr;
  }

  // One timer for all deadlines, and none while nobody waits: an idle client keeps no io_context running.
  void begin_sweep() {
    sweeping_ = true;
    sweep_.expires_after(kSweep);
    sweep_.async_wait([self = weak_from_this()](error_code error) {
      const auto pool = self.lock();
      if (!pool || error || !pool->sweeping_) return;
      const auto now = SteadyClock::now();
      for (auto* connection : pool->active_)
        if (now >= connection->deadline) connection->expire();
      pool->begin_sweep();
    });
  }

  std::shared_ptr<const HttpClient::Shared> shared_;
  asio::any_io_executor executor_;
  std::vector<std::shared_ptr<ClientConnection>> idle_;
  std::unordered_set<ClientConnection*> active_;
  std::deque<asio::steady_timer*> waiting_;
  asio::steady_timer sweep_;
  bool sweeping_ = false;
};

// Keeps the pools of an io_context, and ends them with it.
class Pools : public asio::execution_context::service {
 public:
  using key_type = Pools;
  static inline asio::execution_context::id id;

  explicit Pools(asio::execution_context& context) : service(context) {}

  Pool& of(const std::shared_ptr<const HttpClient::Shared>& shared, const asio::any_io_executor& executor) {
    // Those whose client is gone go as well.
    std::erase_if(pools_, [](const auto& entry) { return entry.first.expired(); });
    const auto at = std::ranges::find_if(pools_, [&](const auto& entry) {
      return !entry.first.owner_before(shared) && !shared.owner_before(entry.first);
    });
    if (at != pools_.end()) return *at->second;
    return *pools_.emplace_back(shared, std::make_shared<Pool>(shared, executor)).second;
  }

 private:
  void shutdown() noexcept override {
    for (const auto& [client, pool] : pools_) pool->shut_down();
    pools_.clear();
  }

  std::vector<std::pair<std::weak_ptr<const HttpClient::Shared>, std::shared_ptr<Pool>>> pools_;
};

}  // namespace

ClientConnection::ClientConnection(std::shared_ptr<Pool> p, const asio::any_io_executor& executor,
                                   std::shared_ptr<const HttpClient::Shared> shared)
    : pool(std::move(p)), shared_(std::move(shared)), resolver_(executor) {
  if (shared_->tls)
    tls_.emplace(tcp::socket(executor), *shared_->tls);
  else
    plain_.emplace(executor);
}

awaitable<error_code> ClientConnection::secure() {
  const auto& host = shared_->server.host;
  tls_->set_verify_callback(asio::ssl::host_name_verification(host));
  error_code no_address;
  asio::ip::make_address(host, no_address);
  // Addresses have no place in the server name indication.
  if (no_address && !SSL_set_tlsext_host_name(tls_->native_handle(), host.c_str()))
    co_return asio::error::invalid_argument;
  const auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::client, kByValue);
  co_return error;
}

awaitable<std::expected<void, std::string>> ClientConnection::open() {
  const auto& server = shared_->server;
  std::vector<tcp::endpoint> endpoints;
  error_code error;
  if (const auto address = asio::ip::make_address(server.host, error); !error) {
    endpoints.emplace_back(address, server.port);
  } else {
    const auto [unresolved, found] =
        co_await resolver_.async_resolve(server.host, std::to_string(server.port), kByValue);
    if (unresolved)
      co_return std::unexpected(fmt::format("{} has no address: {}", server.host, unresolved.message()));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  for (const auto& endpoint : endpoints) {
    if (timed_out_) break;
    error_code ignored;
    socket().close(ignored);
    const auto [refused] = co_await socket().async_connect(endpoint, kByValue);
    error = refused;
    if (!error) break;
  }
  if (error)
    co_return std::unexpected(fmt::format("cannot connect to {}: {}", server.authority(), error.message()));
  error_code ignored;
  socket().set_option(tcp::no_delay(true), ignored);
  if (tls_)
    if (const auto insecure = co_await secure(); insecure)
      co_return std::unexpected(
          fmt::format("no secure connection to {}: {}", server.authority(), insecure.message()));
  open_ = true;
  co_return std::expected<void, std::string>{};
}

awaitable<std::expected<void, ClientError>> ClientConnection::exchange(std::string_view head,
                                                                       std::string_view body) {
  whole_ = false;
  timed_out_ = false;
  if (!open_)
    if (auto opened = co_await open(); !opened)
      co_return failed(Stage::connecting, std::move(opened).error());
  const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head), asio::buffer(body)};
  const auto [unsent, sent] = tls_ ? co_await asio::async_write(*tls_, buffers, kByValue)
                                   : co_await asio::async_write(*plain_, buffers, kByValue);
  if (unsent) co_return failed(Stage::sending, unsent.message());
  co_return co_await receive();
}

awaitable<error_code> ClientConnection::read_more(size_t wanted) {
  if (buffer_.size() - end_ < wanted) buffer_.resize(end_ + wanted);
  const auto room = asio::buffer(buffer_.data() + end_, buffer_.size() - end_);
  const auto [error, count] = tls_ ? co_await tls_->async_read_some(room, kByValue)
                                   : co_await plain_->async_read_some(room, kByValue);
  end_ += count;
  co_return error;
}

awaitable<std::expected<void, ClientError>> ClientConnection::receive() {
  end_ = 0;
  if (buffer_.size() > 4 * kReadSize) std::string().swap(buffer_);
  while (true) {
    const auto result = end_ == 0 ? HeadResult::incomplete : parse_head(unread(), head_);
    if (result == HeadResult::incomplete) {
      const auto stage = end_ == 0 ? Stage::waiting : Stage::receiving;
      if (const auto error = co_await read_more(kReadSize); error)
        co_return failed(stage,
                         fmt::format("the connection ended before the answer did: {}", error.message()));
    } else if (result != HeadResult::complete) {
      co_return failed(Stage::receiving, "the answer is not HTTP");
    } else if (head_.status >= 200) {
      break;
    } else {
      // 100 Continue and the like: the answer is still to come.
      buffer_.erase(0, head_.size);
      end_ -= head_.size;
    }
  }
  co_return co_await receive_body();
}

awaitable<std::expected<void, ClientError>> ClientConnection::receive_body() {
  const size_t limit = shared_->options.max_body;
  const auto too_large = [&] { return failed(Stage::receiving, "the answer is too large"); };
  const bool none = head_.status == 204 || head_.status == 304;
  const bool until_end = !none && !head_.chunked && !head_.content_length;
  if (none) head_.content_length = 0;
  if (head_.content_length.value_or(0) > limit) co_return too_large();
  // The head is looked at again once the buffer has come to rest.
  const std::string_view before = unread();
  unpacked_.clear();
  ChunkedBody chunked(limit);
  while (true) {
    if (head_.chunked) {
      auto rest = unread().substr(head_.size);
      const auto state = chunked.feed(rest);
      buffer_.erase(head_.size, end_ - head_.size - rest.size());
      end_ = head_.size + rest.size();
      if (state == ChunkedBody::State::complete) break;
      if (state == ChunkedBody::State::too_large) co_return too_large();
      if (state == ChunkedBody::State::malformed)
        co_return failed(Stage::receiving, "the answer is not HTTP");
    } else if (!until_end && end_ >= head_.size + *head_.content_length) {
      break;
    }
    if (end_ > limit + kMaxHead) co_return too_large();
    const size_t missing = head_.chunked || until_end ? kReadSize : head_.size + *head_.content_length - end_;
    const auto error = co_await read_more(std::max(missing, size_t{1}));
    if (until_end && error == asio::error::eof) break;
    if (error)
      co_return failed(Stage::receiving,
                       fmt::format("the connection ended before the answer did: {}", error.message()));
  }
  if (unread().data() != before.data()) parse_head(unread(), head_);
  if (head_.chunked) {
    unpacked_ = std::move(chunked.body());
    body_ = unpacked_;
    whole_ = end_ == head_.size;
  } else {
    body_ = until_end ? unread().substr(head_.size)
                      : unread().substr(head_.size, head_.content_length.value_or(0));
    whole_ = !until_end && end_ == head_.size + body_.size();
  }
  co_return std::expected<void, ClientError>{};
}

HttpReply::HttpReply(std::shared_ptr<ClientConnection> connection) : connection_(std::move(connection)) {}

HttpReply::~HttpReply() {
  if (!connection_) return;
  if (const auto pool = connection_->pool) pool->give_back(std::move(connection_));
}

int HttpReply::status() const { return connection_->head().status; }
std::string_view HttpReply::body() const { return connection_->body(); }
std::string_view HttpReply::header(std::string_view name) const {
  return find_header(connection_->head().headers, name).value_or("");
}

HttpClient::HttpClient(Url server, ClientOptions options)
    : shared_(std::make_shared<const Shared>(std::move(server), std::move(options))) {}
HttpClient::~HttpClient() = default;

const Url& HttpClient::server() const { return shared_->server; }

awaitable<std::expected<HttpReply, ClientError>> HttpClient::send(std::string_view head,
                                                                  std::string_view body,
                                                                  SteadyClock::time_point deadline) {
  const auto executor = co_await asio::this_coro::executor;
  auto& pools = asio::use_service<Pools>(asio::query(executor, asio::execution::context));
  auto connection = co_await pools.of(shared_, executor).take(deadline);
  if (!connection)
    co_return std::unexpected(
        ClientError{.stage = Stage::connecting, .timed_out = true, .message = "all connections are busy"});
  // Gives the connection back to the pool, or drops it, however this ends.
  HttpReply reply(connection);
  if (auto done = co_await connection->exchange(head, body); !done) {
    connection->abort();
    co_return std::unexpected(std::move(done).error());
  }
  co_return reply;
}

}  // namespace tabella::net

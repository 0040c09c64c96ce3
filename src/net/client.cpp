#include "net/client.h"

#include <vector>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/this_coro.hpp>

#include "net/client_pool.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using Stage = ClientError::Stage;

// What a client is, for the pools: they go when it does.
struct HttpClient::Identity {
  std::shared_ptr<const ClientSettings> settings;
};

namespace {

// Keeps the pools of an io_context, and ends them with it.
class Pools : public asio::execution_context::service {
 public:
  using key_type = Pools;
  static inline asio::execution_context::id id;

  explicit Pools(asio::execution_context& context) : service(context) {}

  std::shared_ptr<ClientPool> of(const std::shared_ptr<const void>& client,
                                 const std::shared_ptr<const ClientSettings>& settings,
                                 const asio::any_io_executor& executor) {
    std::erase_if(pools_, [](const Entry& entry) { return entry.client.expired(); });
    // Nobody else looks after the pools of clients that are not used any more.
    for (const auto& entry : pools_) entry.pool->close_idle();
    for (const auto& entry : pools_)
      if (!entry.client.owner_before(client) && !client.owner_before(entry.client)) return entry.pool;
    return pools_.emplace_back(Entry{client, std::make_shared<ClientPool>(settings, executor)}).pool;
  }

 private:
  struct Entry {
    std::weak_ptr<const void> client;
    std::shared_ptr<ClientPool> pool;
  };

  void shutdown() noexcept override {
    for (const auto& entry : pools_) entry.pool->shut_down();
    pools_.clear();
  }

  std::vector<Entry> pools_;
};

}  // namespace

HttpReply::HttpReply(std::shared_ptr<ClientConnection> connection) : connection_(std::move(connection)) {}

HttpReply::~HttpReply() {
  if (!connection_) return;
  const auto pool = connection_->pool();
  pool->give_back(std::move(connection_));
}

int HttpReply::status() const { return connection_->head().status; }
std::string_view HttpReply::body() const { return connection_->body(); }
std::string_view HttpReply::header(std::string_view name) const {
  return find_header(connection_->head().headers, name).value_or("");
}

const HttpHeaders& HttpReply::headers() const { return connection_->head().headers; }

HttpClient::HttpClient(Url server, ClientOptions options) {
  if (server.tls && !options.trust) options.trust = std::make_shared<const TlsTrust>(options.ca_file);
  identity_ = std::make_shared<const Identity>(Identity{
      std::make_shared<const ClientSettings>(ClientSettings{std::move(server), std::move(options)})});
}
HttpClient::~HttpClient() = default;

const Url& HttpClient::server() const { return identity_->settings->server; }

awaitable<std::expected<HttpReply, ClientError>> HttpClient::send(
    std::string_view head, std::string_view body, std::chrono::steady_clock::time_point deadline,
    size_t max_body) {
  const auto executor = co_await asio::this_coro::executor;
  auto& pools = asio::use_service<Pools>(asio::query(executor, asio::execution::context));
  const auto pool = pools.of(identity_, identity_->settings, executor);
  auto connection = co_await pool->take(deadline);
  if (!connection)
    co_return std::unexpected(
        ClientError{.stage = Stage::connecting, .timed_out = true, .message = "all connections are busy"});
  // Gives the connection back to the pool, or drops it, however this ends.
  HttpReply reply(connection);
  if (!connection->is_open()) {
    auto endpoints = co_await pool->resolve(deadline);
    if (std::chrono::steady_clock::now() >= deadline) connection->expire();
    if (!endpoints) co_return connection->failed(Stage::connecting, std::move(endpoints).error());
    if (auto opened = co_await connection->open(std::move(*endpoints)); !opened) {
      pool->forget_address();
      co_return std::unexpected(std::move(opened).error());
    }
  }
  if (auto done = co_await connection->exchange(head, body, max_body); !done)
    co_return std::unexpected(std::move(done).error());
  co_return reply;
}

}  // namespace tabella::net

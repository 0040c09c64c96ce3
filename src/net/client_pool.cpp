#include "net/client_pool.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto kByValue = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kSweep{20};
// A connection that was used so shortly ago is taken to be alive without a look.
constexpr std::chrono::milliseconds kFresh{250};
constexpr std::chrono::seconds kAddressKept{10};

}  // namespace

// Somebody who waits for a connection.
struct ClientPool::Waiter {
  asio::steady_timer timer;
  bool served = false;
};

// A place in the queue, which is left however the wait ends; a turn that came and is not used goes to the
// next.
class ClientPool::Queued {
 public:
  Queued(ClientPool& pool, Waiter& waiter) : pool_(pool), waiter_(waiter) {
    pool_.waiting_.push_back(&waiter_);
  }
  ~Queued() {
    if (waiter_.served)
      pool_.pass_on();
    else
      pool_.waiting_.remove(&waiter_);
  }
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

 private:
  ClientPool& pool_;
  Waiter& waiter_;
};

ClientPool::ClientPool(std::shared_ptr<const ClientSettings> settings, asio::any_io_executor executor)
    : settings_(std::move(settings)), executor_(std::move(executor)), sweep_(executor_) {}

awaitable<std::shared_ptr<ClientConnection>> ClientPool::take(Deadline deadline) {
  const auto self = shared_from_this();  // for as long as somebody waits
  if (taken_ < settings_->options.max_connections && waiting_.empty())
    ++taken_;
  else if (!co_await wait_for_turn(deadline))
    co_return nullptr;
  auto connection = take_idle();
  if (!connection) connection = std::make_shared<ClientConnection>(executor_, settings_);
  connection->begin(self, deadline);
  active_.insert(connection.get());
  if (!sweeping_) begin_sweep();
  co_return connection;
}

// The turn that was waited for is counted as taken already.
awaitable<bool> ClientPool::wait_for_turn(Deadline deadline) {
  Waiter waiter{.timer = asio::steady_timer(executor_, deadline)};
  const Queued queued(*this, waiter);
  co_await waiter.timer.async_wait(kByValue);
  co_return std::exchange(waiter.served, false);
}

void ClientPool::pass_on() {
  if (waiting_.empty()) {
    --taken_;
    return;
  }
  auto* next = waiting_.front();
  waiting_.pop_front();
  next->served = true;
  next->timer.cancel();
}

void ClientPool::give_back(std::shared_ptr<ClientConnection> connection) {
  active_.erase(connection.get());
  if (connection->rest()) idle_.push_back(std::move(connection));
  while (!idle_.empty() && SteadyClock::now() - idle_.front()->resting_since() > settings_->options.idle)
    idle_.pop_front();
  pass_on();
  if (active_.empty()) {
    sweeping_ = false;
    sweep_.cancel();
  }
}

// The last used one: the others may rest, and go.
std::shared_ptr<ClientConnection> ClientPool::take_idle() {
  const auto now = SteadyClock::now();
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    const auto since = now - connection->resting_since();
    if (since <= kFresh || (since <= settings_->options.idle && connection->is_quiet())) return connection;
  }
  return nullptr;
}

// One timer for all deadlines, and none while nobody waits: an idle client keeps no io_context running.
void ClientPool::begin_sweep() {
  sweeping_ = true;
  sweep_.expires_after(kSweep);
  sweep_.async_wait([self = weak_from_this()](error_code error) {
    const auto pool = self.lock();
    if (!pool || error || !pool->sweeping_) return;
    const auto now = SteadyClock::now();
    for (auto* connection : pool->active_)
      if (now >= connection->deadline()) connection->expire();
    pool->begin_sweep();
  });
}

// What waits for the system's resolver, which cannot be interrupted, and may be left behind.
struct ClientPool::Lookup {
  explicit Lookup(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}
  tcp::resolver resolver;
  asio::steady_timer done;
  bool answered = false;
  error_code error;
  ClientConnection::Endpoints endpoints;
};

awaitable<std::expected<ClientConnection::Endpoints, std::string>> ClientPool::resolve(Deadline deadline) {
  const auto& server = settings_->server;
  error_code is_name;
  if (const auto address = asio::ip::make_address(server.host, is_name); !is_name)
    co_return ClientConnection::Endpoints{{address, server.port}};
  if (!endpoints_.empty() && SteadyClock::now() < endpoints_until_) co_return endpoints_;
  const auto lookup = std::make_shared<Lookup>(executor_);
  lookup->done.expires_at(deadline);
  lookup->resolver.async_resolve(server.host, std::to_string(server.port),
                                 [lookup](error_code error, const tcp::resolver::results_type& found) {
                                   lookup->answered = true;
                                   lookup->error = error;
                                   for (const auto& entry : found)
                                     lookup->endpoints.push_back(entry.endpoint());
                                   lookup->done.cancel();
                                 });
  co_await lookup->done.async_wait(kByValue);
  if (!lookup->answered)
    co_return std::unexpected(fmt::format("the address of {} was not found in time", server.host));
  if (lookup->endpoints.empty())
    co_return std::unexpected(fmt::format("{} has no address: {}", server.host, lookup->error.message()));
  endpoints_ = lookup->endpoints;
  endpoints_until_ = SteadyClock::now() + kAddressKept;
  co_return endpoints_;
}

void ClientPool::shut_down() {
  idle_.clear();
  sweep_.cancel();
}

}  // namespace tabella::net

#include "net/client_pool.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>

#include "net/by_value.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kSweep{20};
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
  std::shared_ptr<ClientConnection> connection;
  try {
    connection = take_idle();
    if (!connection) connection = std::make_shared<ClientConnection>(executor_, settings_);
  } catch (...) {
    pass_on();
    throw;
  }
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
  close_idle();
  pass_on();
  if (active_.empty()) {
    sweeping_ = false;
    sweep_.cancel();
  }
}

void ClientPool::close_idle() {
  while (!idle_.empty() && SteadyClock::now() - idle_.front()->resting_since() > settings_->options.idle)
    idle_.pop_front();
}

// The last used one: the others may rest, and go.
std::shared_ptr<ClientConnection> ClientPool::take_idle() {
  const auto now = SteadyClock::now();
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (now - connection->resting_since() <= settings_->options.idle && connection->is_quiet())
      return connection;
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

// A question to the system's resolver, for all who need the answer. It cannot be interrupted, but left alone.
struct ClientPool::Lookup {
  explicit Lookup(const asio::any_io_executor& executor) : resolver(executor) {}
  tcp::resolver resolver;
  std::list<asio::steady_timer*> waiting;
  bool answered = false;
  error_code error;
};

// One who waits for it. With the last of them it is given up.
class ClientPool::LookingOn {
 public:
  LookingOn(std::shared_ptr<Lookup> lookup, asio::steady_timer& timer)
      : lookup_(std::move(lookup)), timer_(timer) {
    lookup_->waiting.push_back(&timer_);
  }
  ~LookingOn() {
    lookup_->waiting.remove(&timer_);
    if (lookup_->waiting.empty() && !lookup_->answered) lookup_->resolver.cancel();
  }
  LookingOn(const LookingOn&) = delete;
  LookingOn& operator=(const LookingOn&) = delete;

 private:
  const std::shared_ptr<Lookup> lookup_;
  asio::steady_timer& timer_;
};

std::shared_ptr<ClientPool::Lookup> ClientPool::begin_lookup() {
  auto lookup = std::make_shared<Lookup>(executor_);
  lookup_ = lookup;
  const auto& server = settings_->next_hop();
  lookup->resolver.async_resolve(
      server.host, std::to_string(server.port),
      [lookup, alive = weak_from_this()](error_code error, const tcp::resolver::results_type& found) {
        lookup->answered = true;
        lookup->error = error;
        if (const auto pool = alive.lock(); pool && !found.empty()) {
          pool->endpoints_.clear();
          for (const auto& entry : found) pool->endpoints_.push_back(entry.endpoint());
          pool->endpoints_until_ = SteadyClock::now() + kAddressKept;
        }
        for (auto* timer : lookup->waiting) timer->cancel();
      });
  return lookup;
}

awaitable<std::expected<ClientConnection::Endpoints, std::string>> ClientPool::resolve(Deadline deadline) {
  const auto self = shared_from_this();
  const auto& server = settings_->next_hop();
  error_code is_name;
  if (const auto address = asio::ip::make_address(server.host, is_name); !is_name)
    co_return ClientConnection::Endpoints{{address, server.port}};
  if (!endpoints_.empty() && SteadyClock::now() < endpoints_until_) co_return endpoints_;
  auto lookup = lookup_.lock();
  if (!lookup || lookup->answered) lookup = begin_lookup();
  {
    asio::steady_timer timer(executor_, deadline);
    const LookingOn looking_on(lookup, timer);
    co_await timer.async_wait(kByValue);
  }
  // Where it was last is better than nowhere.
  if (!endpoints_.empty()) co_return endpoints_;
  co_return std::unexpected(lookup->answered
                                ? fmt::format("{} has no address: {}", server.host, lookup->error.message())
                                : fmt::format("the address of {} was not found in time", server.host));
}

void ClientPool::shut_down() {
  idle_.clear();
  sweep_.cancel();
}

}  // namespace tabella::net

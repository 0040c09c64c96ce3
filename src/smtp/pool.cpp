#include "smtp/pool.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/by_value.h"

namespace tabella::smtp {

namespace asio = boost::asio;
using asio::awaitable;
using SteadyClock = std::chrono::steady_clock;

namespace {

// Whether what goes to the one may go over a connection that was made for the other. A password is part of
// it: who does not know it must not profit from who does. Endpoints are not: names are looked up in any
// order.
bool is_same(const Destination& a, const Destination& b) {
  const auto key = [](const Destination& d) {
    return std::tie(d.port, d.host, d.security, d.check_certificate, d.user, d.password, d.mechanism, d.helo,
                    d.rules);
  };
  return key(a) == key(b);
}

}  // namespace

// Shared with the coroutine that closes what has rested too long.
struct ConnectionPool::Impl : std::enable_shared_from_this<ConnectionPool::Impl> {
  // A connection, and what the pool knows of it.
  struct Kept {
    std::unique_ptr<ClientConnection> connection;
    SteadyClock::time_point made;
    SteadyClock::time_point resting_since = {};
  };

  Impl(asio::any_io_executor e, const Trust& t, PoolOptions o)
      : executor(std::move(e)), trust(t), options(o), timer(executor), swept(executor) {}

  awaitable<Delivery> deliver(const Destination& destination, const Letter& letter);
  awaitable<std::expected<Kept, Outcome>> connect(const Destination& destination) const;
  std::optional<Kept> take_idle(const Destination& destination);
  awaitable<void> give_back(Kept kept);
  std::optional<Kept> make_room(const Destination& destination);
  bool is_spent(const Kept& kept) const;
  void begin_sweep();
  awaitable<void> sweep();
  awaitable<void> close();

  const asio::any_io_executor executor;
  const Trust& trust;
  const PoolOptions options;
  std::deque<Kept> idle;  // the last used at the back
  bool closed = false;
  asio::steady_timer timer;  // of the sweep
  bool sweeping = false;
  asio::steady_timer swept;  // for who waits until the sweep has ended
};

awaitable<Delivery> ConnectionPool::Impl::deliver(const Destination& destination, const Letter& letter) {
  if (auto rested = take_idle(destination)) {
    auto delivery = co_await rested->connection->deliver(letter);
    if (!delivery.unheard) {
      co_await give_back(std::move(*rested));
      co_return delivery;
    }
  }
  auto fresh = co_await connect(destination);
  if (!fresh) co_return Delivery{.recipients = {letter.to.size(), fresh.error()}};
  auto delivery = co_await fresh->connection->deliver(letter);
  co_await give_back(std::move(*fresh));
  co_return delivery;
}

awaitable<std::expected<ConnectionPool::Impl::Kept, Outcome>> ConnectionPool::Impl::connect(
    const Destination& destination) const {
  auto connection =
      std::make_unique<ClientConnection>(executor, destination, trust.of(destination), options.timeouts);
  auto opened = co_await connection->open();
  if (!opened && connection->may_go_without_tls(opened.error()))
    opened = co_await connection->open_without_tls();
  if (!opened) co_return std::unexpected(std::move(opened).error());
  co_return Kept{.connection = std::move(connection), .made = SteadyClock::now()};
}

// The last used one: the others may rest, and go.
std::optional<ConnectionPool::Impl::Kept> ConnectionPool::Impl::take_idle(const Destination& destination) {
  for (size_t i = idle.size(); i-- > 0;) {
    if (!is_same(idle[i].connection->destination(), destination)) continue;
    auto kept = std::move(idle[i]);
    idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(i));
    if (!is_spent(kept) && kept.connection->is_quiet()) return kept;
  }
  return std::nullopt;
}

bool ConnectionPool::Impl::is_spent(const Kept& kept) const {
  return !kept.connection->is_open() || kept.connection->letters() >= options.max_letters ||
         SteadyClock::now() - kept.made >= options.max_age;
}

awaitable<void> ConnectionPool::Impl::give_back(Kept kept) {
  if (closed || is_spent(kept) || options.max_idle == 0 || options.max_idle_per_destination == 0)
    co_return co_await kept.connection->quit();
  auto displaced = make_room(kept.connection->destination());
  kept.resting_since = SteadyClock::now();
  idle.push_back(std::move(kept));
  begin_sweep();
  if (displaced) co_await displaced->connection->quit();
}

// The one that has to go for another to this destination to rest.
std::optional<ConnectionPool::Impl::Kept> ConnectionPool::Impl::make_room(const Destination& destination) {
  const auto goes_there = [&](const Kept& kept) {
    return is_same(kept.connection->destination(), destination);
  };
  auto last = idle.end();
  if (std::cmp_greater_equal(std::ranges::count_if(idle, goes_there), options.max_idle_per_destination))
    last = std::ranges::find_if(idle, goes_there);
  else if (idle.size() >= options.max_idle)
    last = idle.begin();
  if (last == idle.end()) return std::nullopt;
  auto displaced = std::move(*last);
  idle.erase(last);
  return displaced;
}

// It runs only while something rests: a pool that is not used keeps nobody's loop running.
void ConnectionPool::Impl::begin_sweep() {
  if (std::exchange(sweeping, true)) return;
  asio::co_spawn(executor, [self = shared_from_this()] { return self->sweep(); }, asio::detached);
}

awaitable<void> ConnectionPool::Impl::sweep() {
  while (!idle.empty()) {
    const auto due = idle.front().resting_since + options.idle;
    if (SteadyClock::now() < due) {
      timer.expires_at(due);
      co_await timer.async_wait(net::kByValue);
      continue;
    }
    const auto kept = std::move(idle.front());
    idle.pop_front();
    co_await kept.connection->quit();
  }
  sweeping = false;
  swept.cancel();
}

awaitable<void> ConnectionPool::Impl::close() {
  closed = true;
  const auto leaving = std::exchange(idle, {});
  timer.cancel();
  const auto until = SteadyClock::now() + options.timeouts.quit;
  for (const auto& kept : leaving) {
    if (SteadyClock::now() >= until) break;
    kept.connection->expire_at(until);
    co_await kept.connection->quit();
  }
  while (sweeping) {
    swept.expires_at(SteadyClock::time_point::max());
    co_await swept.async_wait(net::kByValue);
  }
}

ConnectionPool::ConnectionPool(asio::any_io_executor executor, const Trust& trust, PoolOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), trust, options)) {}
ConnectionPool::~ConnectionPool() {
  impl_->closed = true;
  impl_->idle.clear();
  impl_->timer.cancel();
}

// A coroutine of its own, so that what it was given lives as long as it runs.
awaitable<Delivery> ConnectionPool::deliver(Destination destination, Letter letter) {
  co_return co_await impl_->deliver(destination, letter);
}

awaitable<void> ConnectionPool::close() { return impl_->close(); }

size_t ConnectionPool::idle() const { return impl_->idle.size(); }

}  // namespace tabella::smtp

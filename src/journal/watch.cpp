#include "journal/watch.h"

#include <algorithm>
#include <stdexcept>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "store/pause.h"

namespace tabella::journal {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;
using WatchClock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kLookEvery{100};
// How many positions before the last are looked at when somebody begins to wait: what was appended since he
// has read.
constexpr uint64_t kLookBack = 1000;

}  // namespace

// On the thread of its executor, but for what is guarded.
struct Watch::Waiter {
  Waiter(const asio::any_io_executor& executor, uint64_t number) : timer(executor), known(number) {}

  asio::steady_timer timer;
  const uint64_t known;
  bool woken = false;
  bool told = false;  // guarded by Watch::mutex_
};

// While it lives, its waiter is woken.
class Watch::Registration {
 public:
  // No pid: for the journal's positions.
  Registration(Watch& watch, const Entity& entity, const std::shared_ptr<Waiter>& waiter)
      : watch_(watch), entity_(entity) {
    const std::lock_guard lock(watch_.mutex_);
    auto& waiters = list();
    at_ = waiters.insert(waiters.end(), waiter);
  }
  ~Registration() {
    const std::lock_guard lock(watch_.mutex_);
    auto& waiters = list();
    waiters.erase(at_);
    // Neither entities nor journals that nobody waits for stay behind.
    const auto watched = watch_.journals_.find(entity_.journal);
    if (waiters.empty() && !entity_.pid.empty()) watched->second.entities.erase(entity_.pid);
    if (!watched->second.anyone()) watch_.journals_.erase(watched);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  bool has_news(uint64_t known) {
    const std::lock_guard lock(watch_.mutex_);
    if (watch_.stopping_) return true;
    return (entity_.pid.empty() ? watch_.positions_ : watch_.numbers_).of(entity_) > known;
  }

 private:
  Waiters& list() {
    auto& watched = watch_.journals_[entity_.journal];
    return entity_.pid.empty() ? watched.waiters : watched.entities[entity_.pid];
  }

  Watch& watch_;
  const Entity entity_;
  Waiters::iterator at_;
};

// Under the mutex: whoever waits cannot go away meanwhile.
void Watch::wake(Waiters& waiters, uint64_t number) {
  for (const auto& waiter : waiters) {
    if (waiter->told || number <= waiter->known) continue;
    waiter->told = true;
    asio::post(waiter->timer.get_executor(), [waiter] {
      waiter->woken = true;
      waiter->timer.cancel();
    });
  }
}

void Watch::appended(const Entity& entity, uint64_t highest) {
  const std::lock_guard lock(mutex_);
  numbers_.note(entity, highest);
  const auto watched = journals_.find(entity.journal);
  if (watched == journals_.end()) return;
  const auto waiters = watched->second.entities.find(entity.pid);
  if (waiters != watched->second.entities.end()) wake(waiters->second, highest);
}

void Watch::placed(const std::string& journal, uint64_t last) {
  const std::lock_guard lock(mutex_);
  positions_.note({.journal = journal, .pid = {}}, last);
  const auto watched = journals_.find(journal);
  if (watched != journals_.end()) wake(watched->second.waiters, last);
}

awaitable<void> Watch::wait_for_event(Entity entity, uint64_t known, milliseconds at_most) {
  return wait(std::move(entity), known, at_most);
}

awaitable<void> Watch::wait_for_position(std::string journal, uint64_t known, milliseconds at_most) {
  return wait({.journal = std::move(journal), .pid = {}}, known, at_most);
}

awaitable<void> Watch::wait(Entity entity, uint64_t known, milliseconds at_most) {
  const auto until = WatchClock::now() + at_most;
  const auto waiter = std::make_shared<Waiter>(co_await asio::this_coro::executor, known);
  Registration registration(*this, entity, waiter);
  // Now that it is registered: what comes between this and the waiting is not missed.
  if (registration.has_news(known)) co_return;
  while (!waiter->woken && WatchClock::now() < until) {
    waiter->timer.expires_at(until);
    co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

void Watch::stop() {
  stopping_ = true;
  const std::lock_guard lock(mutex_);
  for (auto& [journal, watched] : journals_) {
    wake(watched.waiters, UINT64_MAX);
    for (auto& [pid, waiters] : watched.entities) wake(waiters, UINT64_MAX);
  }
}

std::vector<std::pair<std::string, bool>> Watch::watched() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, bool>> journals;
  for (const auto& [journal, watched] : journals_)
    if (watched.anyone()) journals.emplace_back(journal, !watched.entities.empty());
  return journals;
}

awaitable<void> Watch::run() {
  std::map<std::string, uint64_t> seen;  // of the journals that somebody waits for, up to where
  while (shared_ && !stopping_) {
    std::map<std::string, uint64_t> still;
    for (const auto& [journal, for_entities] : watched()) {
      auto& to = still[journal];
      if (const auto known = seen.find(journal); known != seen.end()) to = known->second;
      try {
        co_await look(journal, for_entities, to);
      } catch (const std::exception& error) {
        log::warning("news of the journal {} could not be looked for: {}", journal, error.what());
      }
    }
    seen = std::move(still);
    co_await store::pause_for(kLookEvery);
  }
}

awaitable<void> Watch::look(std::string journal, bool for_entities, uint64_t& seen) {
  const auto last = co_await order_.last(journal);
  if (!last) throw std::runtime_error(last.error().message);
  if (*last <= seen) co_return;
  if (seen == 0) seen = *last - std::min(*last, kLookBack);
  placed(journal, *last);
  while (for_entities && seen < *last) {
    const auto runs = co_await order_.runs(journal, seen);
    if (!runs) throw std::runtime_error(runs.error().message);
    if (runs->empty()) break;
    for (const auto& run : *runs) appended({.journal = journal, .pid = run.pid}, run.last_number());
    seen = runs->back().last_position();
  }
  seen = std::max(seen, *last);
}

}  // namespace tabella::journal

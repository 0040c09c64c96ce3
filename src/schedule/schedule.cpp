#include "schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ids.h"
#include "base/log.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::schedule {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;
using store::absent;
using store::Async;
using store::differs;
using store::equals;
using store::ErrorCode;
using store::exists;
using store::failed_its_condition;
using store::Result;
using store::Update;
using store::was_made;

namespace {

constexpr milliseconds kShortestPause{5};
constexpr milliseconds kPauseAfterFailure{200};
constexpr size_t kMostPassedOver = 500;  // due timers of kinds that have no room, in one look
constexpr milliseconds kLongestPause{5000};
constexpr milliseconds kLongestBackoff{60'000};
constexpr std::chrono::minutes kForgetBackoff{10};
constexpr int kCancelTries = 20;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// A row that is done stays as long as a put() of it may still be on its way a second time, and more.
constexpr std::chrono::seconds kKeepDone{600};

Schedule::Options usable(Schedule::Options options) {
  if (options.worker.empty()) options.worker = make_uuid();
  options.busy_poll = std::max(options.busy_poll, kShortestPause);
  options.poll = std::max(options.poll, options.busy_poll);
  return options;
}

std::optional<int64_t> sooner(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// Changes a timer's row.
Update change(const std::string& table, const std::string& id) {
  return Update(table, key_of(id)).return_old_on_failure();
}

// Ends a timer: its row leaves the index, and goes by time to live.
Update ended(const std::string& table, const std::string& id, TimePoint now, const std::string& end) {
  const auto expires = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch() + kKeepDone);
  return change(table, id)
      .set("expires", expires.count())
      .set("end", end)
      .remove("owner")
      .remove("due")
      .remove("shard")
      .remove("payload");
}

}  // namespace

// A timer that this process handles, or is about to.
struct Schedule::Claim {
  std::string owner;
  bool running = false;    // claimed, and not finished
  bool kept = false;       // it is being put off right now
  bool due_again = false;  // it was seen to be due while it was here
};

Schedule::Schedule(store::Store& store, const Clock& clock, Options options)
    : store_(store), clock_(clock), options_(usable(std::move(options))), life_(random_bits()) {}
Schedule::~Schedule() = default;

void Schedule::on(std::string kind, Handler handler) {
  handlers_.insert_or_assign(std::move(kind), std::move(handler));
}

// The condition is for a put() that is sent again because its answer was lost: the timer may have fired in
// the meantime, and must not come back.
Async<void> Schedule::put(Timer timer) {
  const auto nonce = make_uuid();
  auto written = co_await store_.put_item(
      store::Put(options_.table, to_item(timer, nonce)).when(absent("nonce") || differs("nonce", nonce)));
  if (!written && !failed_its_condition(written.error()))
    co_return std::unexpected(std::move(written).error());
  wake_for(timer.at);
  co_return Result<>{};
}

Async<bool> Schedule::reschedule(std::string id, TimePoint at) {
  const auto nonce = make_uuid();
  auto changed = co_await store_.update_item(change(options_.table, id)
                                                 .set("due", epoch_milliseconds(at))
                                                 .set("at", epoch_milliseconds(at))
                                                 .set("nonce", nonce)
                                                 .set("attempt", 0)
                                                 .remove("owner")
                                                 .when(exists("due") && differs("nonce", nonce)));
  wake_for(at);
  if (changed) co_return true;
  const auto& error = changed.error();
  if (!failed_its_condition(error)) co_return std::unexpected(error);
  if (!error.unsure) co_return false;
  // It may have been made, and fired, before its answer was lost.
  TABELLA_CO_ASSIGN(const auto row, co_await row_behind(error, id));
  co_return row&& nonce_of(*row) == nonce;
}

Async<std::optional<item::Item>> Schedule::row_behind(const store::Error& failed_condition,
                                                      const std::string& id) {
  return item_behind(store_, failed_condition, options_.table, key_of(id));
}

// The row stays for a while, as that of a timer that has fired: a put() that is still on its way finds it.
Async<Cancelled> Schedule::cancel(std::string id) {
  const auto token = make_uuid();
  const auto while_running = token + "/running";
  for (int i = 0; i < kCancelTries; ++i) {
    auto changed = co_await store_.update_item(
        ended(options_.table, id, clock_.now(), token).when(exists("due") && absent("owner")));
    if (changed) co_return Cancelled::yes;
    const auto& error = changed.error();
    if (!failed_its_condition(error)) co_return std::unexpected(error);
    TABELLA_CO_ASSIGN(const auto row, co_await row_behind(error, id));
    if (!row) co_return Cancelled::unknown;
    if (is_done(*row) && end_of(*row) == token) co_return Cancelled::yes;
    if (is_done(*row)) co_return end_of(*row) == while_running ? Cancelled::running : Cancelled::unknown;
    const auto owner = owner_of(*row);
    if (owner.empty()) continue;  // it has just been given up
    // Somebody is at it: a row that is done is not tried again.
    changed = co_await store_.update_item(
        ended(options_.table, id, clock_.now(), while_running).when(equals("owner", owner)));
    if (changed) co_return Cancelled::running;
    if (!failed_its_condition(changed.error())) co_return std::unexpected(std::move(changed).error());
  }
  co_return store::fail(ErrorCode::unavailable, fmt::format("timer {} changes too fast to be cancelled", id));
}

void Schedule::wake() {
  woken_ = true;
  if (sleep_) sleep_->cancel();
}

void Schedule::wake_for(TimePoint at) {
  const std::lock_guard lock(mutex_);
  if (!runner_ || epoch_milliseconds(at) >= next_look_) return;
  asio::post(*runner_, [alive = std::weak_ptr(self_)] {
    if (const auto self = alive.lock()) (*self)->wake();
  });
}

void Schedule::stop() {
  stopping_ = true;
  wake();
}

awaitable<void> Schedule::wait(milliseconds length) {
  {
    const std::lock_guard lock(mutex_);
    next_look_ = now() + length.count();
  }
  if (!woken_ && length > milliseconds{0}) {
    sleep_->expires_after(length);
    co_await sleep_->async_wait(asio::as_tuple(asio::use_awaitable));
  }
  woken_ = false;
  const std::lock_guard lock(mutex_);
  next_look_ = kNever;  // whatever is set while we look is looked at next
}

awaitable<void> Schedule::run() {
  // What others see of the run goes with this coroutine, wherever that ends.
  struct Running {
    Running(Schedule& s, const asio::any_io_executor& executor) : schedule(s), sleep(executor) {
      schedule.sleep_ = &sleep;
      const std::lock_guard lock(schedule.mutex_);
      schedule.runner_ = executor;
      schedule.next_look_ = kNever;
    }
    ~Running() {
      schedule.sleep_ = nullptr;
      const std::lock_guard lock(schedule.mutex_);
      schedule.runner_.reset();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    Schedule& schedule;
    asio::steady_timer sleep;
  };
  const auto executor = co_await asio::this_coro::executor;
  const Running running(*this, executor);
  ++keeping_;
  asio::co_spawn(executor, keep_claims(), [this](const std::exception_ptr&) {
    --keeping_;
    wake();
  });

  auto idle = options_.busy_poll;
  uint64_t fired_before = 0;
  while (!stopping_) {
    const auto [failed, next] = co_await try_to_look();
    const bool works = std::exchange(fired_before, fired_.load()) != fired_;
    // The more there is to do the sooner we look again; what is known to be due wakes us when it is.
    idle = works ? options_.busy_poll : std::min(idle * 2, options_.poll);
    auto length = idle;
    if (next) length = std::min(length, std::max(milliseconds(*next - now()), kShortestPause));
    co_await wait(failed ? std::max(length, kPauseAfterFailure) : length);
  }
  while (!active_.empty() || keeping_ > 0) co_await wait(milliseconds{500});
}

awaitable<Schedule::Looked> Schedule::try_to_look() {
  std::string failure;
  try {
    if (!table_made_) {
      const auto made = co_await prepare_tables(store_, {plan(options_.table)}, store::Missing::create,
                                                [this] { return stopping_; });
      table_made_ = made.has_value();
      if (!made) failure = made.error().message;
    }
    if (table_made_) {
      const auto looked = co_await look();
      if (looked) co_return Looked{.next = *looked};
      failure = looked.error().message;
    }
  } catch (const std::exception& error) {
    failure = error.what();
  }
  log::warning("the timers of {}: {}", options_.table, failure);
  co_return Looked{.failed = true};
}

Async<std::optional<int64_t>> Schedule::look() {
  // Processes that look at the same time begin at different ends.
  const auto first = static_cast<int>(random_bits() % kShards);
  std::optional<int64_t> next;
  for (int i = 0; i < kShards && !stopping_; ++i) {
    auto found = co_await look_at((first + i) % kShards);
    if (!found) co_return found;
    next = sooner(next, *found);
  }
  co_return next;
}

Async<std::optional<int64_t>> Schedule::look_at(int shard) {
  store::QueryRequest request =
      store::Query(options_.table).index(kIndex).partition("shard", shard_name(shard));
  std::optional<int64_t> next;
  auto& before = seen_[static_cast<size_t>(shard)];
  SeenRows seen;
  size_t passed_over = 0;
  while (active_.size() < options_.concurrency) {
    request.options.limit =
        static_cast<int64_t>(std::clamp<size_t>(options_.concurrency - active_.size(), 8, 200));
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    for (const auto& item : page.items) {
      auto row = to_due_row(item);
      if (row.due > now()) {
        before = std::move(seen);
        co_return sooner(next, row.due);
      }
      if (const auto mine = active_.find(row.id); mine != active_.end()) {
        mine->second->due_again = true;
        continue;
      }
      if (!handlers_.contains(row.kind)) continue;
      if (const auto pause = backoff_of(row.id)) {
        next = sooner(next, now() + pause->count());
        continue;
      }
      if (!may_be_claimed(row, before, seen)) {
        next = sooner(next, now() + options_.lease.count() / 4);
        continue;
      }
      if (active_.size() >= options_.concurrency) break;
      if (!is_full(row.kind))
        begin(std::move(row));
      else if (++passed_over > kMostPassedOver)
        break;
    }
    if (passed_over > kMostPassedOver) break;
    if (!page.last_key && active_.size() < options_.concurrency) {
      before = std::move(seen);
      co_return next;
    }
    if (!page.last_key) break;
    request.options.start_key = std::move(page.last_key);
  }
  // There was no room to look at all: the others stay as they were seen.
  for (auto& [id, row] : seen) before.insert_or_assign(id, std::move(row));
  co_return next;
}

bool Schedule::is_full(const std::string& kind) const {
  const auto active = active_of_.find(kind);
  return active != active_of_.end() && active->second >= options_.of_one_kind;
}

// Nobody's, or that of somebody who has not moved for too long.
bool Schedule::may_be_claimed(const DueRow& row, const SeenRows& before, SeenRows& seen) const {
  if (row.owner.empty()) return true;
  const auto at = before.find(row.id);
  const bool same = at != before.end() && at->second.owner == row.owner && at->second.due == row.due;
  const auto since = same ? at->second.since : clock_.elapsed();
  seen[row.id] = {.owner = row.owner, .due = row.due, .since = since};
  return clock_.elapsed() - since >= options_.lease;
}

std::optional<milliseconds> Schedule::backoff_of(const std::string& id) const {
  const auto at = backoffs_.find(id);
  if (at == backoffs_.end() || at->second.until <= clock_.elapsed()) return std::nullopt;
  return std::chrono::ceil<milliseconds>(at->second.until - clock_.elapsed());
}

// Longer each time. One that was not tried again for long is gone.
void Schedule::back_off(const std::string& id) {
  const auto now = clock_.elapsed();
  std::erase_if(backoffs_, [&](const auto& entry) { return now - entry.second.until > kForgetBackoff; });
  auto& backoff = backoffs_[id];
  backoff.pause = std::clamp(backoff.pause * 2, kPauseAfterFailure, kLongestBackoff);
  backoff.until = now + backoff.pause;
  wake_for(clock_.now() + backoff.pause);
}

void Schedule::begin(DueRow row) {
  const auto claim =
      std::make_shared<Claim>(Claim{.owner = fmt::format("{}/{:x}/{}", options_.worker, life_, ++claims_)});
  const auto id = row.id;
  const auto kind = row.kind;
  active_[id] = claim;
  ++active_of_[kind];
  asio::co_spawn(sleep_->get_executor(), fire(std::move(row), claim),
                 [this, id, kind](const std::exception_ptr& failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::exception& error) {
                     log::warning("timer {}: {}", id, error.what());
                   }
                   // There is room again, it is due once more, or there is a stop to finish.
                   const bool was_full = active_.size() >= options_.concurrency || is_full(kind);
                   --active_of_[kind];
                   const bool due_again = active_[id]->due_again;
                   active_.erase(id);
                   if (was_full || due_again || stopping_) wake();
                 });
}

awaitable<void> Schedule::fire(DueRow row, std::shared_ptr<Claim> mine) {
  auto claimed = co_await claim(row, mine->owner);
  if (!claimed) {
    back_off(row.id);
    log::warning("timer {} could not be claimed: {}", row.id, claimed.error().message);
    co_return;
  }
  if (!*claimed) co_return;  // somebody else was faster
  backoffs_.erase(row.id);
  mine->running = true;
  ++fired_;
  if ((*claimed)->attempt == 1) lateness_.observe(std::max(clock_.now() - (*claimed)->timer.at, Elapsed{0}));
  const bool handled = co_await handle(**claimed);
  for (auto pause = kPauseAfterFailure;; pause = std::min(pause * 2, kLongestPause)) {
    const auto ended = handled ? co_await finish(row.id, mine->owner)
                               : co_await retry(row.id, mine->owner, (*claimed)->attempt);
    if (ended) co_return;
    log::warning("timer {} was handled, and that could not be written down: {}", row.id,
                 ended.error().message);
    if (stopping_) co_return;  // it comes again
    co_await store::pause_for(pause);
  }
}

Async<std::optional<ClaimedRow>> Schedule::claim(const DueRow& row, const std::string& owner) {
  auto changed =
      co_await store_.update_item(change(options_.table, row.id)
                                      .set("owner", owner)
                                      .set("due", now() + options_.lease.count())
                                      .add("attempt", 1)
                                      .when(equals("due", row.due))
                                      .when(row.owner.empty() ? absent("owner") : equals("owner", row.owner))
                                      .returning(store::ReturnValues::all_new));
  if (changed && !changed->attributes)
    co_return store::fail(ErrorCode::internal, "the store did not return the row that it changed");
  if (changed) co_return std::optional(to_claimed_row(*changed->attributes));
  auto& error = changed.error();
  if (!failed_its_condition(error)) co_return std::unexpected(std::move(error));
  if (!error.unsure) co_return std::optional<ClaimedRow>();
  // An answer that was lost may have been to a claim that was made.
  TABELLA_CO_ASSIGN(const auto found, co_await row_behind(error, row.id));
  if (found && owner_of(*found) == owner) co_return std::optional(to_claimed_row(*found));
  co_return std::optional<ClaimedRow>();
}

// False if it is to be tried again.
awaitable<bool> Schedule::handle(const ClaimedRow& row) {
  const Firing firing{.timer = row.timer, .attempt = row.attempt};
  try {
    co_await handlers_.at(firing.timer.kind)(firing);
    co_return true;
  } catch (const std::exception& error) {
    ++failed_;
    log::warning("timer {} of {} failed at attempt {}, and is tried again: {}", firing.timer.id,
                 firing.timer.kind, firing.attempt, error.what());
  } catch (...) {
    ++failed_;
    log::warning("timer {} of {} failed at attempt {}, and is tried again", firing.timer.id,
                 firing.timer.kind, firing.attempt);
  }
  co_return false;
}

Async<void> Schedule::finish(const std::string& id, const std::string& owner) {
  TABELLA_CO_TRY(was_made(co_await store_.update_item(
      ended(options_.table, id, clock_.now(), owner).when(equals("owner", owner)))));
  co_return Result<>{};
}

Async<void> Schedule::retry(const std::string& id, const std::string& owner, int attempt) {
  const auto pause =
      std::min(options_.first_retry * (int64_t{1} << std::clamp(attempt - 1, 0, 30)), options_.longest_retry);
  TABELLA_CO_TRY(was_made(co_await store_.update_item(change(options_.table, id)
                                                          .set("due", now() + pause.count())
                                                          .remove("owner")
                                                          .when(equals("owner", owner)))));
  wake_for(clock_.now() + pause);
  co_return Result<>{};
}

// Puts off what is being handled, for as long as it is.
awaitable<void> Schedule::keep_claims() {
  auto last = clock_.elapsed();
  while (!stopping_ || !active_.empty()) {
    // In short steps: a stop is not kept waiting, and a clock that is moved is noticed.
    co_await store::pause_for(std::min(options_.lease / 6, milliseconds{200}));
    if (clock_.elapsed() - last < options_.lease / 3) continue;
    last = clock_.elapsed();
    // All at once: one that takes long must not cost the others their claims.
    for (const auto& [id, mine] : active_) {
      if (!mine->running || std::exchange(mine->kept, true)) continue;
      ++keeping_;
      asio::co_spawn(sleep_->get_executor(), keep(id, mine), [this, kept = mine](const std::exception_ptr&) {
        kept->kept = false;
        --keeping_;
        if (stopping_) wake();
      });
    }
  }
}

awaitable<void> Schedule::keep(std::string id, std::shared_ptr<Claim> mine) {
  const auto kept = co_await store_.update_item(change(options_.table, id)
                                                    .set("due", now() + options_.lease.count())
                                                    .when(equals("owner", mine->owner)));
  if (!kept && !failed_its_condition(kept.error()))
    log::warning("timer {} could not be kept: {}", id, kept.error().message);
}

void Schedule::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_timers_fired_total", "Timers whose handlers were called.",
              static_cast<double>(fired_.load()));
  out.counter("tabella_timers_failed_total", "Calls of timers' handlers that failed.",
              static_cast<double>(failed_.load()));
  out.histogram("tabella_timer_lateness_seconds", "How long after their time timers fired.", lateness_);
}

}  // namespace tabella::schedule

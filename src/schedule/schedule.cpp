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
constexpr size_t kMostWaiting = 50'000;    // of one kind, in memory
constexpr size_t kMostPassedOver = 5'000;  // in one look at a shard
constexpr int64_t kRowsAtOnce = 200;
constexpr std::chrono::seconds kBetweenWholeLooks{30};
constexpr milliseconds kLongestPause{5000};
constexpr milliseconds kLongestBackoff{60'000};
constexpr std::chrono::minutes kForgetBackoff{10};
constexpr int kCancelTries = 20;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// A row that is done stays as long as a put() of it may still be on its way a second time, and more.
constexpr std::chrono::seconds kKeepDone{600};

Schedule::Options usable(Schedule::Options options) {
  if (options.worker.empty()) options.worker = options.with_store + make_uuid();
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
  int64_t due = 0;         // as it was seen
  bool running = false;    // claimed, and not finished
  bool kept = false;       // it is being put off right now
  bool due_again = false;  // it was seen to be due anew while it was here
  int64_t again = 0;       // then
};

// What a look at a shard has come to.
struct Schedule::Looking {
  SeenRows& before;
  SeenRows seen;
  std::optional<int64_t> next;  // when there is something to do again
  int64_t left = kNever;        // the earliest row that was left in the index
  size_t passed_over = 0;       // due timers of kinds that have no room
};

Schedule::Schedule(store::Store& store, const Clock& clock, Options options)
    : store_(store), clock_(clock), options_(usable(std::move(options))), life_(random_bits()) {
  expected_.fill(kNever);
}
Schedule::~Schedule() = default;

void Schedule::on(std::string kind, Handler handler) { kinds_[std::move(kind)].handler = std::move(handler); }

// The condition is for a put() that is sent again because its answer was lost: the timer may have fired in
// the meantime, and must not come back.
Async<void> Schedule::put(Timer timer) {
  const auto nonce = make_nonce();
  auto written = co_await store_.put_item(
      store::Put(options_.table, to_item(timer, nonce)).when(absent("nonce") || differs("nonce", nonce)));
  if (!written && !failed_its_condition(written.error()))
    co_return std::unexpected(std::move(written).error());
  expect(timer.id, timer.at);
  co_return Result<>{};
}

// A row that is done has no due time.
Async<bool> Schedule::put_if_absent(Timer timer) {
  const auto nonce = make_nonce();
  const auto written = co_await store_.put_item(store::Put(options_.table, to_item(timer, nonce))
                                                    .when(absent("due"))
                                                    .when(differs("nonce", nonce) || absent("nonce")));
  if (!written && !failed_its_condition(written.error())) co_return store::error_of(written);
  expect(timer.id, timer.at);
  co_return written.has_value();
}

store::TransactWrite Schedule::put_write(const Timer& timer) const {
  return store::Put(options_.table, to_item(timer, make_nonce()));
}

std::string Schedule::make_nonce() const { return options_.with_store + make_uuid(); }

Async<bool> Schedule::reschedule(std::string id, TimePoint at) {
  auto update = change(options_.table, id).set("at", epoch_milliseconds(at)).set("attempt", 0);
  return change_due(std::move(id), at, std::move(update));
}

Async<bool> Schedule::reschedule_waiting(std::string id, TimePoint at) {
  auto update = change(options_.table, id).set("at", epoch_milliseconds(at)).set("attempt", 0);
  return change_due(std::move(id), at, std::move(update).when(absent("owner")));
}

Async<bool> Schedule::put_off(const Firing& firing, TimePoint at) {
  const auto& id = firing.timer.id;
  return change_due(id, at, change(options_.table, id).set("attempt", firing.attempt - 1));
}

Async<bool> Schedule::change_due(std::string id, TimePoint at, Update update) {
  const auto nonce = make_nonce();
  auto changed = co_await store_.update_item(std::move(update)
                                                 .set("due", epoch_milliseconds(at))
                                                 .set("nonce", nonce)
                                                 .remove("owner")
                                                 .when(exists("due") && differs("nonce", nonce)));
  expect(id, at);
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

void Schedule::expect(std::string_view id, TimePoint at) {
  look_from(id, epoch_milliseconds(at));
  wake_for(at);
}

void Schedule::look_from(std::string_view id, int64_t due) {
  const std::lock_guard lock(mutex_);
  auto& expected = expected_[static_cast<size_t>(shard_of(id))];
  expected = std::min(expected, due);
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
  for (auto& [name, kind] : kinds_) {
    for (const auto& [due, row] : kind.waiting) active_.erase(row.id);
    kind.waiting.clear();
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
  // Timers that others have set late, and a clock that was put back, are for a look at everything.
  if (now() < looked_ || clock_.elapsed() - looked_at_all_ >= kBetweenWholeLooks) {
    from_.fill(0);
    looked_at_all_ = clock_.elapsed();
  }
  looked_ = now();
  for (auto& [name, kind] : kinds_) kind.left_rows = false;
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
  auto& from = from_[static_cast<size_t>(shard)];
  {
    const std::lock_guard lock(mutex_);
    from = std::min(from, std::exchange(expected_[static_cast<size_t>(shard)], kNever));
  }
  const auto begun = now();
  // Nobody works on what was left, though its time is put off.
  const bool looks_for_left = !options_.with_store.empty() && from == 0;
  const auto horizon = looks_for_left ? begun + options_.lease.count() : begun;
  store::Query query(options_.table);
  query.index(kIndex).partition("shard", shard_name(shard)).limit(kRowsAtOnce);
  if (from > 0) query.where(store::at_least("due", from));
  store::QueryRequest request = std::move(query);
  auto& before = seen_[static_cast<size_t>(shard)];
  Looking looking{.before = before};
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    for (const auto& item : page.items) {
      auto row = to_due_row(item);
      const auto due = row.due;
      const bool is_left = due <= horizon && is_by_who_has_store(row.owner) && !active_.contains(row.id);
      const bool is_due = due <= now() || is_left;
      if (is_due && take(std::move(row), looking)) continue;
      if (!is_due) looking.next = sooner(looking.next, due);
      if (!is_due && due <= horizon) continue;
      if (is_due)
        // Not all were looked at: the others stay as they were seen.
        for (auto& [id, seen] : looking.seen) before.insert_or_assign(id, std::move(seen));
      else
        before = std::move(looking.seen);
      from = std::min(looking.left, begun - options_.set_late.count());
      co_return looking.next;
    }
    if (!page.last_key) break;
    request.options.start_key = std::move(page.last_key);
  }
  before = std::move(looking.seen);
  from = std::min(looking.left, begun - options_.set_late.count());
  co_return looking.next;
}

bool Schedule::take(DueRow row, Looking& looking) {
  if (const auto mine = active_.find(row.id); mine != active_.end()) {
    auto& claim = *mine->second;
    if (claim.running || row.due != claim.due) {
      claim.again = claim.due_again ? std::min(claim.again, row.due) : row.due;
      claim.due_again = true;
    }
    return true;
  }
  const auto kind = kinds_.find(row.kind);
  if (kind == kinds_.end()) return true;
  if (const auto pause = backoff_of(row.id)) {
    looking.next = sooner(looking.next, now() + pause->count());
    looking.left = std::min(looking.left, row.due);
    return true;
  }
  if (!may_be_claimed(row, looking.before, looking.seen)) {
    looking.next = sooner(looking.next, now() + options_.lease.count() / 4);
    looking.left = std::min(looking.left, row.due);
    return true;
  }
  auto& of_its_kind = kind->second;
  const bool at_once = has_room(of_its_kind) && of_its_kind.waiting.empty();
  if (!at_once && of_its_kind.waiting.size() >= kMostWaiting) {
    of_its_kind.left_rows = true;
    looking.left = std::min(looking.left, row.due);
    return ++looking.passed_over < kMostPassedOver;
  }
  const auto claim = std::make_shared<Claim>(
      Claim{.owner = fmt::format("{}/{:x}/{}", options_.worker, life_, ++claims_), .due = row.due});
  active_[row.id] = claim;
  if (at_once)
    begin(of_its_kind, std::move(row), claim);
  else
    of_its_kind.waiting.emplace(row.due, std::move(row));
  return true;
}

bool Schedule::has_room(const Kind& kind) const {
  return running_ < options_.concurrency && kind.running < options_.of_one_kind;
}

// A claim of that kind which is not in active_ was left by a process that has ended.
bool Schedule::is_by_who_has_store(std::string_view owner) const {
  return !options_.with_store.empty() && owner.starts_with(options_.with_store);
}

// Nobody's, or that of somebody who has not moved for too long.
bool Schedule::may_be_claimed(const DueRow& row, const SeenRows& before, SeenRows& seen) const {
  if (row.owner.empty() || is_by_who_has_store(row.owner)) return true;
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

void Schedule::begin(Kind& kind, DueRow row, std::shared_ptr<Claim> claim) {
  const auto id = row.id;
  ++running_;
  ++kind.running;
  kind.turn = ++turns_;
  asio::co_spawn(sleep_->get_executor(), fire(std::move(row), std::move(claim)),
                 [this, id, &kind](const std::exception_ptr& failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::exception& error) {
                     log::warning("timer {}: {}", id, error.what());
                   }
                   let_go(kind, id);
                 });
}

void Schedule::let_go(Kind& kind, const std::string& id) {
  --running_;
  --kind.running;
  const auto claim = active_.extract(id).mapped();
  if (claim->due_again) look_from(id, claim->again);
  if (stopping_) return wake();
  begin_waiting();
  const bool has_room_again = kind.left_rows && kind.waiting.size() <= kMostWaiting / 2;
  if (has_room_again) kind.left_rows = false;
  if (claim->due_again || has_room_again) wake();
}

// Those of the kind that has the fewest at work come first, by turns: some that are slow do not keep the
// others waiting, however many they are.
void Schedule::begin_waiting() {
  while (true) {
    Kind* next = nullptr;
    for (auto& [name, kind] : kinds_)
      if (!kind.waiting.empty() && has_room(kind) &&
          (!next || std::pair(kind.running, kind.turn) < std::pair(next->running, next->turn)))
        next = &kind;
    if (!next) return;
    auto row = std::move(next->waiting.extract(next->waiting.begin()).mapped());
    const auto claim = active_.at(row.id);
    begin(*next, std::move(row), claim);
  }
}

awaitable<void> Schedule::fire(DueRow row, std::shared_ptr<Claim> mine) {
  auto claimed = co_await claim(row, mine->owner);
  if (!claimed) {
    back_off(row.id);
    look_from(row.id, row.due);
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
    const auto ended = handled ? co_await finish(**claimed, mine->owner)
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
    co_await kinds_.at(firing.timer.kind).handler(firing);
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

Async<void> Schedule::finish(const ClaimedRow& row, const std::string& owner) {
  const auto& id = row.timer.id;
  if (is_by_who_has_store(row.nonce)) {
    TABELLA_CO_TRY(was_made(
        co_await store_.delete_item(store::Delete(options_.table, key_of(id)).when(equals("owner", owner)))));
    co_return Result<>{};
  }
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
  expect(id, clock_.now() + pause);
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

#include "outbox/dispatcher.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "net/by_value.h"
#include "outbox/callbacks.h"
#include "outbox/intake.h"
#include "outbox/statements.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::outbox {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;
using store::Async;
using store::ErrorCode;

namespace {

constexpr int64_t kPage = 100;                // rows of the index that are read at once
constexpr milliseconds kShortestRest{5};      // between two looks
constexpr milliseconds kAfterTrouble{5'000};  // until a message is looked at again when the store failed
constexpr int64_t kClockMargin = 2'000;       // milliseconds that a lease of others is given beyond its end
// Rows that are passed over because their destination has enough to do, before a look ends: while it is busy,
// and when it comes by from time to time.
constexpr size_t kMostSkipped = 200;
constexpr size_t kMostSkippedAtRest = 5'000;
constexpr milliseconds kSeenBefore = std::chrono::minutes{10};
constexpr std::chrono::seconds kThoroughEvery{20};
constexpr size_t kMostIntakes = 16;             // at once
constexpr size_t kKeptInMemory = 256 * 1024;    // of one message's content, while it waits
constexpr std::chrono::seconds kResumeFor{10};  // for how long others may still pause by what they knew
constexpr std::chrono::minutes kSurelyCreated{10};
constexpr size_t kLongestReason = 2'048;
constexpr std::array kPriorities = {Priority::high, Priority::normal, Priority::low};

template <class Do>
void for_each_shard(Do act) {
  for (const auto priority : kPriorities)
    for (int number = 0; number < kWorkShards; ++number) act(work_shard(priority, number));
}

// How much of a reply is kept: a row has room for all of them.
std::string kept_reply(std::string reply, size_t recipients) {
  reply.resize(
      std::min(reply.size(), std::clamp<size_t>(150'000 / std::max<size_t>(recipients, 1), 60, 500)));
  return to_valid_utf8(reply);
}

// From best to worst.
constexpr std::array<std::string_view, 4> kOutcomes = {"delivered", "deferred", "failed", "unknown"};

std::string_view outcome_name(smtp::Outcome::Kind kind) {
  switch (kind) {
    case smtp::Outcome::Kind::delivered: return kOutcomes[0];
    case smtp::Outcome::Kind::deferred: return kOutcomes[1];
    case smtp::Outcome::Kind::refused: return kOutcomes[2];
    case smtp::Outcome::Kind::unknown: return kOutcomes[3];
  }
  return kOutcomes[3];
}

std::string worst_of(const std::vector<AttemptResult>& results) {
  size_t worst = 0;
  for (const auto& result : results) {
    const auto at = static_cast<size_t>(std::ranges::find(kOutcomes, result.outcome) - kOutcomes.begin());
    worst = std::max(worst, std::min(at, kOutcomes.size() - 1));
  }
  return std::string(kOutcomes[worst]);
}

// An attempt that nobody has written down: its process died in the middle of it.
Attempt lost_attempt(const Message& message, std::string worker, TimePoint began, TimePoint now) {
  Attempt attempt{.number = message.attempts,
                  .outcome = "unknown",
                  .began = began,
                  .ended = now,
                  .worker = std::move(worker)};
  for (const auto& recipient : message.recipients) {
    if (recipient.result != Result::waiting) continue;
    attempt.repeated = attempt.repeated || recipient.may_have_it;
    attempt.results.push_back({.address = recipient.address,
                               .outcome = "unknown",
                               .reply = "the process that was sending it ended before it was written down"});
  }
  return attempt;
}

std::string first_reply(const Message& message, Result result) {
  const auto found = std::ranges::find(message.recipients, result, &Recipient::result);
  return found == message.recipients.end() ? std::string() : found->reply;
}

void fail_all(Message& message, const std::string& reply) {
  for (auto& recipient : message.recipients)
    if (recipient.result == Result::waiting) {
      recipient.result = Result::failed;
      recipient.reply = reply;
    }
}

bool has_reached(const Attempt& attempt) {
  return std::ranges::any_of(attempt.results, [](const AttemptResult& result) {
    return result.outcome != "deferred" || (result.step != "connect" && result.step != "greeting");
  });
}

}  // namespace

struct Dispatcher::Work {
  HeldMessage held;
  Elapsed renewed{};
  bool lost = false;                  // others have it now
  std::string destination = {};       // whose lane it is in
  std::string owner_before = {};      // who had it last; empty: nobody
  std::set<std::string> paused = {};  // domains that nothing is sent to now

  Message& message() { return held.message; }
  const Message& message() const { return held.message; }
  Email& email() { return held.email; }
};

Dispatcher::Dispatcher(Outbox& outbox, Carrier& carrier, Intake& intake, Callbacks& callbacks,
                       asio::any_io_executor executor, DispatcherOptions options)
    : outbox_(outbox),
      carrier_(carrier),
      intake_(intake),
      callbacks_(callbacks),
      executor_(std::move(executor)),
      options_(std::move(options)),
      lanes_(options_.lanes),
      pump_timer_(executor_),
      sleep_(executor_) {}

Dispatcher::~Dispatcher() = default;

Outbox::Hands Dispatcher::hands() {
  return {.hold = [this] { return holding_ < options_.most_held; },
          .take =
              [this](HeldMessage held) {
                ++holding_;
                if (held.content && held.content->size() > kKeptInMemory) held.content.reset();
                auto work = std::make_shared<Work>(std::move(held), outbox_.clock().elapsed());
                asio::post(executor_, [this, work = std::move(work)]() mutable {
                  // Somebody was faster, or it is too late: it is in the index.
                  if (stopping_ || !held_.emplace(work->message().id, work).second)
                    --holding_;
                  else
                    enqueue(std::move(work));
                });
              },
          .look =
              [this] {
                if (!look_asked_.exchange(true)) asio::post(executor_, [this] { wake(); });
              }};
}

void Dispatcher::stop() {
  asio::post(executor_, [this] {
    stopping_ = true;
    pump_timer_.cancel();
    wake();
  });
}

awaitable<void> Dispatcher::run() {
  spawn(keep_leases());
  // Alone on the store, whatever somebody has is left from a process before this one.
  if (!options_.shared) {
    const auto until = outbox_.now() + outbox_.options().lease.count();
    for_each_shard([&](const std::string& shard) {
      spawn([](Dispatcher& self, std::string where, int64_t at) -> Task {
        if (const auto looked = co_await self.look_at(where, at); !looked)
          log::warning("the outbox cannot look for work: {}", looked.error().message);
      }(*this, shard, until));
    });
  }
  bool at_rest = true;
  while (!stopping_) {
    look_asked_ = false;
    most_skipped_ = at_rest ? kMostSkippedAtRest : kMostSkipped;
    const auto now = outbox_.clock().elapsed();
    thorough_ = now - last_thorough_ > kThoroughEvery;
    if (thorough_) last_thorough_ = now;
    const auto next = co_await look();
    auto rest = options_.poll;
    if (next) rest = std::clamp(milliseconds(*next - outbox_.now()), kShortestRest, rest);
    at_rest = !co_await wait(rest);
    if (!stopping_) co_await store::pause_for(kShortestRest);
  }
  auto waiting = lanes_.clear();
  if (options_.shared)
    for (auto& work : waiting) spawn(release(std::move(work)));
  while (running_ > 0) co_await wait(milliseconds{100});
  co_await carrier_.close();
}

void Dispatcher::spawn(Task task) {
  ++running_;
  asio::co_spawn(executor_, std::move(task), [this](const std::exception_ptr& thrown) {
    --running_;
    if (stopping_) wake();
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      log::error("work of the outbox has ended early: {}", error.what());
    }
  });
}

// Whether it was woken.
awaitable<bool> Dispatcher::wait(milliseconds length) {
  if (!woken_) {
    sleep_.expires_after(length);
    co_await sleep_.async_wait(net::kByValue);
  }
  co_return std::exchange(woken_, false);
}

void Dispatcher::wake() {
  woken_ = true;
  sleep_.cancel();
}

// ---- Finding ----

// When the next will be due, if that is known.
awaitable<std::optional<int64_t>> Dispatcher::look() {
  more_ = false;
  const auto pauses = co_await outbox_.pauses().lately();
  if (!pauses) {
    log::warning("the outbox cannot look for work: {}", pauses.error().message);
    co_return std::nullopt;
  }
  for (const auto& [destination, pause] : *pauses)
    if (pause.resuming) {
      co_await resume_paused();
      break;
    }
  if (const auto all = pauses->find("*"); all != pauses->end() && !all->second.resuming)
    co_return std::nullopt;
  std::vector<std::string> shards;
  for_each_shard([&](std::string shard) { shards.push_back(std::move(shard)); });
  for (const auto& shard : shards) {
    if (const auto looked = co_await look_at(shard, outbox_.now()); !looked) {
      log::warning("the outbox cannot look for work: {}", looked.error().message);
      co_return std::nullopt;
    }
  }
  if (options_.shared || more_) co_return std::nullopt;
  const auto next = co_await next_due();
  co_return next ? *next : std::nullopt;
}

// What came due long ago was seen by a look before, or is found by the next one that is thorough: entries
// that are gone lie there, and cost time.
Async<void> Dispatcher::look_at(const std::string& shard, int64_t until) {
  const auto since = thorough_ ? 0 : until - kSeenBefore.count();
  // Where the last look ended because too many were passed over.
  auto from = std::exchange(look_from_[shard], std::nullopt);
  if (from && store::number_of(*from, "due") < since) from.reset();
  size_t skipped = 0;
  do {
    store::QueryRequest query = store::Query(table())
                                    .index(kByDue)
                                    .partition("shard", shard)
                                    .where(store::between("due", since, until))
                                    .limit(kPage);
    query.options.start_key = std::move(from);
    TABELLA_CO_ASSIGN(auto page, co_await outbox_.store().query(std::move(query)));
    const auto now = outbox_.now();
    for (const auto& item : page.items) {
      const auto row = to_due(item);
      if (!row || held_.contains(row->id) || !may_take(*row, now)) continue;
      if (stopping_ || held_.size() >= options_.most_held) {
        more_ = true;
        co_return store::Result<>{};
      }
      if (!lanes_.has_room(carrier_.destination_of(row->destination))) {
        more_ = true;
        ++skipped;
        continue;
      }
      auto work = std::make_shared<Work>();
      work->renewed = outbox_.clock().elapsed();
      held_.emplace(row->id, work);
      ++holding_;
      spawn(begin(*row, std::move(work)));
    }
    from = std::move(page.last_key);
    if (from && skipped >= most_skipped_) {
      look_from_[shard] = std::move(from);
      co_return store::Result<>{};
    }
  } while (from);
  co_return store::Result<>{};
}

bool Dispatcher::may_take(const DueMessage& row, int64_t now) const {
  if (row.owner.empty()) return row.due <= now;
  if (!options_.shared) return true;
  return row.due + kClockMargin <= now;
}

Async<std::optional<int64_t>> Dispatcher::next_due() {
  std::optional<int64_t> next;
  std::vector<std::string> shards;
  for_each_shard([&](std::string shard) { shards.push_back(std::move(shard)); });
  for (const auto& shard : shards) {
    TABELLA_CO_ASSIGN(const auto page, co_await outbox_.store().query(store::Query(table())
                                                                          .index(kByDue)
                                                                          .partition("shard", shard)
                                                                          .after("due", outbox_.now())
                                                                          .limit(1)));
    for (const auto& item : page.items)
      if (const auto row = to_due(item); row && (!next || row->due < *next)) next = row->due;
  }
  co_return next;
}

awaitable<void> Dispatcher::begin(DueMessage row, WorkPtr work) {
  std::string trouble;
  try {
    const auto claimed = co_await claim(row, *work);
    if (claimed && *claimed) co_return co_await handle(work);
    if (!claimed) trouble = claimed.error().message;
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  if (!trouble.empty()) log::warning("email {} was not looked at: {}", row.id, trouble);
  forget(row.id, work);
}

Async<bool> Dispatcher::claim(const DueMessage& row, Work& work) {
  const auto due = outbox_.now() + outbox_.options().lease.count();
  auto changed = co_await outbox_.store().update_item(
      store::Update(table(), message_key(row.id))
          .set("due", due)
          .set("owner", me())
          .when(store::equals("due", row.due) && store::equals("owner", row.owner))
          .returning(store::ReturnValues::all_new));
  if (!changed) {
    if (store::failed_its_condition(changed.error())) co_return false;
    co_return store::error_of(changed);
  }
  auto message = changed->attributes ? to_message(*changed->attributes) : std::nullopt;
  if (!message) co_return false;
  TABELLA_CO_ASSIGN(auto email, co_await outbox_.backend().find(row.id));
  if (!row.owner.empty() && row.owner != me()) ++taken_over_;
  work.owner_before = row.owner;
  work.held.message = std::move(*message);
  // Not there: it was never acknowledged, is long over, or is just being created.
  if (!email) {
    auto& row_of_none = work.message();
    const auto age = outbox_.clock().now() - row_of_none.created;
    if (age < kSurelyCreated)
      outbox_.make_due(
          row_of_none,
          outbox_.now() +
              std::clamp(std::chrono::floor<milliseconds>(age), milliseconds{20}, kAfterTrouble).count());
    else
      row_of_none.shard.clear();
    TABELLA_CO_TRY(co_await update(row_of_none));
    co_return false;
  }
  work.held.email = std::move(*email);
  co_return true;
}

// Moves the work of destinations that were resumed back to where it is found.
awaitable<void> Dispatcher::resume_paused() {
  const auto pauses = co_await outbox_.pauses().all();
  if (!pauses) co_return;
  for (const auto& [destination, pause] : *pauses) {
    if (!pause.resuming) continue;
    if (const auto moved = co_await unpark(destination); !moved)
      log::warning("mail to {} is still paused: {}", destination, moved.error().message);
  }
}

// Some pages of it; the rest with the next look.
Async<void> Dispatcher::unpark(const std::string& destination) {
  constexpr int kPages = 50;
  for (int pages = 0; pages < kPages && !stopping_; ++pages) {
    TABELLA_CO_ASSIGN(const auto pauses, co_await outbox_.pauses().all());
    const auto pause = pauses.find(destination);
    if (pause == pauses.end() || !pause->second.resuming) co_return store::Result<>{};
    TABELLA_CO_ASSIGN(
        const auto page,
        co_await outbox_.store().query(
            store::Query(table()).index(kByDue).partition("shard", paused_shard(destination)).limit(kPage)));
    // Whoever had not heard of it yet may have parked one more.
    if (page.items.empty() && outbox_.clock().now() - pause->second.resumed > kResumeFor)
      co_return co_await outbox_.pauses().forget(destination);
    if (page.items.empty()) co_return store::Result<>{};
    for (const auto& item : page.items) {
      const auto row = to_due(item);
      if (!row) continue;
      TABELLA_CO_ASSIGN(auto message, co_await outbox_.find_message(row->id));
      if (!message || message->shard != row->shard) continue;
      TABELLA_CO_TRY(store::was_made(
          co_await outbox_.store().update_item(store::Update(table(), message_key(row->id))
                                                   .set("shard", work_shard(*message))
                                                   .when(store::equals("shard", row->shard)))));
    }
  }
  wake();
  co_return store::Result<>{};
}

// ---- By state ----

awaitable<void> Dispatcher::handle(WorkPtr work) {
  switch (work->email().status) {
    case State::accepted:
    case State::intaking: co_return co_await handle_intake(std::move(work));
    case State::ready: {
      if (const auto known = co_await reconcile(work->message()); !known)
        co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
      co_return enqueue(std::move(work));
    }
    case State::processing: co_return co_await handle_interrupted(std::move(work));
    case State::sent:
    case State::failed:
    case State::invalid:
    case State::calling_sent_callback:
    case State::calling_failed_callback:
    case State::sent_acknowledged:
    case State::failed_acknowledged: co_return co_await handle_done(std::move(work));
  }
}

// An attempt that was written down, and whose state was moved, but not the message's own row.
Async<void> Dispatcher::reconcile(Message& message) {
  if (!message.attempting) co_return store::Result<>{};
  message.attempting = false;
  TABELLA_CO_ASSIGN(const auto life, co_await outbox_.find(message.id));
  if (!life) co_return store::Result<>{};
  for (const auto& attempt : life->attempts)
    if (attempt.number == message.attempts) apply(attempt, message);
  co_return store::Result<>{};
}

void Dispatcher::enqueue(WorkPtr work) {
  work->destination = carrier_.destination_of(next_domain(work->message()));
  if (!lanes_.has_room(work->destination)) {
    more_ = true;
    return spawn(put_off(std::move(work), outbox_.now()));
  }
  const auto destination = work->destination;
  const auto priority = work->message().priority;
  lanes_.add(destination, priority, std::move(work));
  pump();
}

void Dispatcher::pump() {
  if (stopping_) return;
  auto next = lanes_.next(outbox_.clock().elapsed());
  for (auto& [destination, work] : next.work) spawn(deliver(std::move(work), std::move(destination)));
  if (!next.at) return;
  pump_timer_.expires_after(*next.at - outbox_.clock().elapsed());
  pump_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) pump();
  });
}

awaitable<void> Dispatcher::handle_intake(WorkPtr work) {
  auto& message = work->message();
  auto& email = work->email();
  // What we cannot read is its own program's, and must stay so that it can take it.
  if (!email.payload_file_path.empty() && !intake_.has_folder())
    co_return co_await put_off(work, outbox_.now() + options_.stale.count());
  if (intakes_ >= kMostIntakes) co_return co_await put_off(work, outbox_.now() + 200);
  // Another program is at it; when it has been for too long, it is taken for dead.
  if (email.status == State::intaking && !message.attempting) {
    const auto stale_at = email.updated_at + options_.stale;
    if (stale_at > outbox_.clock().now()) co_return co_await put_off(work, epoch_milliseconds(stale_at));
    const auto back =
        co_await outbox_.backend().move(email, State::accepted, "intake did not come to an end", {});
    if (!back || !*back) co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    email = **back;
  }
  if (email.status == State::accepted) {
    message.attempting = true;
    auto moved = co_await outbox_.backend().move(email, State::intaking, "",
                                                 {.before = {update_statement(table(), message, me())}});
    if (moved && !*moved) message.attempting = false;
    if (!moved || !*moved) co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    email = **moved;
  }
  ++intakes_;
  auto taken = co_await intake_.take(email, message);
  --intakes_;
  co_await conclude_intake(std::move(work), std::move(taken));
}

awaitable<void> Dispatcher::conclude_intake(WorkPtr work, IntakeResult taken) {
  auto& message = work->message();
  auto to = State::ready;
  auto due = outbox_.now();
  if (taken.kind == IntakeResult::Kind::invalid) to = State::invalid;
  if (taken.kind == IntakeResult::Kind::later || taken.kind == IntakeResult::Kind::foreign) {
    to = State::accepted;
    ++message.attempts;
    due += backoff(options_.retry, message.attempts, random_bits()).count();
    if (outbox_.clock().now() >= message.give_up_at) {
      to = State::invalid;
      taken.reason = fmt::format("gave up: {}", taken.reason);
    }
  }
  if (to == State::ready) {
    message.attempts = 0;
    due = std::max(due, epoch_milliseconds(message.send_at));
    message.give_up_at = std::max(message.give_up_at, message.send_at + outbox_.options().give_up);
    // Before it is READY: whoever finds it so must find it composed.
    const auto written =
        co_await outbox_.store().execute_transaction({.statements = {rewrite_statement(table(), message)}});
    if (!written) {
      log::warning("email {} is not taken in yet: {}", message.id, written.error().message);
      co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    }
  }
  message.attempting = false;
  message.shard.clear();
  if (to != State::invalid) outbox_.make_due(message, due);
  const auto moved = co_await outbox_.backend().move(work->email(), to, taken.reason,
                                                     {.after = {update_statement(table(), message)}});
  if (!moved) log::warning("email {} was not taken in: {}", message.id, moved.error().message);
  drop(work);
  wake();
}

// A message that is being sent, but not by us.
awaitable<void> Dispatcher::handle_interrupted(WorkPtr work) {
  auto& message = work->message();
  auto& email = work->email();
  if (message.attempting) {
    const auto life = co_await outbox_.find(message.id);
    if (!life) co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    // It may have been written down, and only its state not been moved.
    if (*life)
      for (const auto& attempt : (*life)->attempts)
        if (attempt.number == message.attempts) co_return co_await conclude(std::move(work), attempt);
    ++unknown_;
    auto lost = lost_attempt(message, work->owner_before, email.updated_at, outbox_.clock().now());
    co_return co_await conclude(std::move(work), std::move(lost));
  }
  const auto stale_at = email.updated_at + options_.stale;
  if (stale_at > outbox_.clock().now()) co_return co_await put_off(work, epoch_milliseconds(stale_at));
  // What it was sending we may not even know; with the file we do.
  if (message.recipients.empty()) co_await intake_.read_eml(email, message);
  if (!message.recipients.empty()) {
    ++message.attempts;
    auto lost = lost_attempt(message, work->owner_before, email.updated_at, outbox_.clock().now());
    co_return co_await conclude(std::move(work), std::move(lost));
  }
  outbox_.make_due(message, outbox_.now());
  const auto reason =
      fmt::format("nothing was heard of it for {} minutes; {}",
                  std::chrono::floor<std::chrono::minutes>(options_.stale).count(), email.reason);
  const auto moved = co_await outbox_.backend().move(email, State::ready, reason,
                                                     {.after = {update_statement(table(), message)}});
  if (!moved) log::warning("email {} was not put back: {}", message.id, moved.error().message);
  drop(work);
  wake();
}

awaitable<void> Dispatcher::handle_done(WorkPtr work) {
  auto& message = work->message();
  const auto state = work->email().status;
  if (const auto known = co_await reconcile(message); !known)
    co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
  if ((state == State::sent || state == State::failed) && outbox_.wants_callback(message))
    if (const auto armed = co_await callbacks_.arm(message.id); !armed) {
      log::warning("the callback of email {} waits: {}", message.id, armed.error().message);
      co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    }
  message.shard.clear();
  if (const auto cleared = co_await update(message); !cleared)
    log::warning("email {} is done, but still listed: {}", message.id, cleared.error().message);
  drop(work);
}

// ---- Delivery ----

awaitable<void> Dispatcher::deliver(WorkPtr work, std::string destination) {
  std::optional<bool> reached;
  try {
    reached = co_await deliver_one(work, destination);
  } catch (const std::exception& error) {
    log::error("email {} was not sent: {}", work->message().id, error.what());
    drop(work);
  }
  lanes_.ended(destination, reached, outbox_.clock().elapsed());
  pump();
}

// Whether its destination could be reached; nothing: nobody tried.
awaitable<std::optional<bool>> Dispatcher::deliver_one(WorkPtr work, const std::string& destination) {
  if (!co_await may_go(work, destination)) co_return std::nullopt;
  const auto started = co_await start_attempt(*work);
  if (!started) log::warning("email {} was not sent: {}", work->message().id, started.error().message);
  // Or somebody else moved it: what it needs now is seen with its next look.
  if (!started || !*started) {
    co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    co_return std::nullopt;
  }
  auto made = co_await attempt(*work);
  std::optional<bool> reached;
  if (!made.results.empty()) reached = has_reached(made);
  co_await conclude(std::move(work), std::move(made));
  co_return reached;
}

// False if it was let go.
awaitable<bool> Dispatcher::may_go(WorkPtr work, const std::string& destination) {
  auto& message = work->message();
  if (work->lost) {
    drop(work);
    co_return false;
  }
  if (const auto down = lanes_.down_for(destination, outbox_.clock().elapsed())) {
    if (outbox_.clock().now() >= message.give_up_at) {
      fail_all(message, "given up: its destination cannot be reached");
      co_return true;
    }
    const auto pause = std::chrono::ceil<milliseconds>(*down).count();
    co_await put_off(work, outbox_.now() + pause + static_cast<int64_t>(random_bits() % 5'000));
    co_return false;
  }
  if (!co_await is_read(work)) co_return false;
  if (co_await is_paused(work)) co_return false;
  if (const auto dropped = co_await drop_suppressed(message); !dropped) {
    co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    co_return false;
  }
  co_return true;
}

// Whether its content is there to be sent; if not it was put off.
awaitable<bool> Dispatcher::is_read(WorkPtr work) {
  auto& message = work->message();
  const bool unknown = message.recipients.empty();
  const auto loaded = co_await load_content(*work);
  if (loaded && !unknown) co_return true;
  if (loaded) {
    // Now that it is known who it is for, it gets into their lane.
    outbox_.make_due(message, outbox_.now());
    const auto written =
        co_await outbox_.store().execute_transaction({.statements = {rewrite_statement(table(), message)}});
    if (!written) log::warning("email {} is left to its lease: {}", message.id, written.error().message);
    drop(work);
    wake();
    co_return false;
  }
  const bool missing = loaded.error().code == ErrorCode::resource_not_found;
  if (missing && outbox_.clock().now() >= message.give_up_at) {
    fail_all(message, loaded.error().message);
    co_return true;
  }
  log::warning("email {} cannot be read: {}", message.id, loaded.error().message);
  co_await put_off(work, outbox_.now() + (missing ? options_.stale : kAfterTrouble).count());
  co_return false;
}

// Whether nobody may have it now: then it was parked.
awaitable<bool> Dispatcher::is_paused(WorkPtr work) {
  const auto& message = work->message();
  const auto pauses = co_await outbox_.pauses().lately();
  if (!pauses) {
    co_await put_off(work, outbox_.now() + kAfterTrouble.count());
    co_return true;
  }
  const auto paused = [&](const std::string& domain) {
    const auto found = pauses->find(domain);
    return found != pauses->end() && !found->second.resuming;
  };
  work->paused.clear();
  bool anybody = false;
  for (const auto& recipient : message.recipients) {
    if (recipient.result != Result::waiting) continue;
    auto domain = domain_of(recipient.address);
    if (paused(domain))
      work->paused.insert(std::move(domain));
    else
      anybody = true;
  }
  if (paused("*")) {
    co_await park(work, "*");
    co_return true;
  }
  if (anybody || work->paused.empty()) co_return false;
  co_await park(work, *work->paused.begin());
  co_return true;
}

Async<void> Dispatcher::drop_suppressed(Message& message) {
  std::vector<std::string> addresses;
  for (const auto& recipient : message.recipients)
    if (recipient.result == Result::waiting) addresses.push_back(recipient.address);
  TABELLA_CO_ASSIGN(const auto suppressed, co_await outbox_.suppressions().among(std::move(addresses)));
  if (suppressed.empty()) co_return store::Result<>{};
  for (auto& recipient : message.recipients)
    if (recipient.result == Result::waiting && suppressed.contains(lower(recipient.address))) {
      recipient.result = Result::suppressed;
      recipient.reply = "the address is on the suppression list";
    }
  co_return store::Result<>{};
}

Async<void> Dispatcher::load_content(Work& work) {
  if (work.held.content) co_return store::Result<>{};
  auto& message = work.message();
  if (message.composed) {
    TABELLA_CO_ASSIGN(auto bytes, co_await outbox_.load(message, kContent));
    if (!bytes.empty()) {
      work.held.content = std::make_shared<const std::string>(std::move(bytes));
      co_return store::Result<>{};
    }
  }
  // Another program's, or one whose content is a file.
  auto read = co_await intake_.read_eml(work.email(), message);
  if (read.kind != IntakeResult::Kind::ready)
    co_return store::fail(ErrorCode::resource_not_found, read.reason);
  work.held.content = std::make_shared<const std::string>(std::move(read.content));
  co_return store::Result<>{};
}

// From here on the message is ours to send. False: somebody else moved it.
Async<bool> Dispatcher::start_attempt(Work& work) {
  auto& message = work.message();
  ++message.attempts;
  message.attempting = true;
  TABELLA_CO_ASSIGN(auto moved,
                    co_await outbox_.backend().move(work.email(), State::processing,
                                                    fmt::format("attempt {}", message.attempts),
                                                    {.before = {update_statement(table(), message, me())}}));
  if (moved) {
    work.email() = std::move(*moved);
  } else {
    --message.attempts;
    message.attempting = false;
  }
  co_return moved.has_value();
}

awaitable<Attempt> Dispatcher::attempt(const Work& work) {
  const auto& message = work.message();
  Attempt attempt{.number = message.attempts, .outcome = {}, .began = outbox_.clock().now(), .worker = me()};
  std::vector<std::string> addresses;
  for (const auto& recipient : message.recipients)
    if (recipient.result == Result::waiting && !work.paused.contains(domain_of(recipient.address))) {
      addresses.push_back(recipient.address);
      attempt.repeated = attempt.repeated || recipient.may_have_it;
    }
  if (!addresses.empty()) {
    auto from = options_.sender ? options_.sender(message) : message.from;
    const auto carried = co_await carrier_.carry(std::move(from), addresses, work.held.content);
    for (size_t i = 0; i < carried.size(); ++i)
      attempt.results.push_back({.address = addresses[i],
                                 .outcome = std::string(outcome_name(carried[i].outcome.kind)),
                                 .host = carried[i].host,
                                 .step = std::string(smtp::to_string(carried[i].outcome.step)),
                                 .reply = kept_reply(carried[i].outcome.reply, message.recipients.size())});
  }
  attempt.ended = outbox_.clock().now();
  attempt.outcome = attempt.results.empty() ? "failed" : worst_of(attempt.results);
  co_return attempt;
}

// Writes down what came of it, however long that takes: what was delivered must not be forgotten.
awaitable<void> Dispatcher::conclude(WorkPtr work, Attempt attempt) {
  auto& message = work->message();
  apply(attempt, message);
  message.attempting = false;
  const auto verdict = decide(message, attempt);
  for (auto pause = milliseconds{50};; pause = std::min(pause * 2, kAfterTrouble)) {
    const auto written = co_await write_down(*work, attempt, verdict);
    if (written) break;
    log::warning("what became of email {} is not written down yet: {}", message.id, written.error().message);
    if (stopping_ && pause >= milliseconds{1'000}) co_return drop(work);
    co_await store::pause_for(pause);
  }
  if (const auto suppressed = co_await suppress_unknown_users(*work, attempt); !suppressed)
    log::warning("an address was not put on the suppression list: {}", suppressed.error().message);
  if (!message.shard.empty() && message.owner == me()) co_return co_await handle_done(std::move(work));
  drop(work);
  if (!message.shard.empty()) wake();
}

void Dispatcher::apply(const Attempt& attempt, Message& message) const {
  for (const auto& result : attempt.results) {
    const auto recipient = std::ranges::find(message.recipients, result.address, &Recipient::address);
    if (recipient == message.recipients.end() || recipient->result != Result::waiting) continue;
    recipient->reply = result.reply;
    if (result.outcome == "delivered") recipient->result = Result::delivered;
    if (result.outcome == "failed") recipient->result = Result::failed;
    if (result.outcome == "unknown") {
      recipient->may_have_it = true;
      if (options_.if_unknown == IfUnknown::fail) recipient->result = Result::unknown;
    }
  }
}

// The state that follows, and with it when the message is to be looked at again.
Dispatcher::Verdict Dispatcher::decide(Message& message, const Attempt& attempt) const {
  const auto now = outbox_.clock().now();
  if (message.any(Result::waiting) && now >= message.give_up_at)
    for (auto& recipient : message.recipients)
      if (recipient.result == Result::waiting) {
        recipient.result = recipient.may_have_it ? Result::unknown : Result::failed;
        recipient.reply = fmt::format("given up after {} attempts: {}", attempt.number, recipient.reply);
      }
  message.shard.clear();
  if (message.any(Result::waiting)) {
    outbox_.make_due(
        message, epoch_milliseconds(now) + backoff(options_.retry, attempt.number, random_bits()).count());
    return {State::ready, first_reply(message, Result::waiting)};
  }
  if (outbox_.wants_callback(message)) {
    outbox_.make_due(message, outbox_.now() + outbox_.options().lease.count());
    message.owner = me();
  }
  std::string failures;
  for (const auto& recipient : message.recipients) {
    if (recipient.result == Result::delivered) continue;
    if (failures.size() > kLongestReason) {
      failures += "; and others";
      break;
    }
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", recipient.address, recipient.reply);
  }
  if (!message.any(Result::delivered))
    return {State::failed, failures.empty() ? "there is nobody to send it to" : failures};
  auto reason = first_reply(message, Result::delivered);
  if (!failures.empty()) reason += "; not delivered to " + failures;
  return {State::sent, std::move(reason)};
}

Async<void> Dispatcher::write_down(Work& work, const Attempt& attempt, const Verdict& verdict) {
  const auto& message = work.message();
  const auto insert = insert_into(table(), to_item(message, attempt));
  const auto update = update_statement(table(), message, me());
  auto moved = co_await outbox_.backend().move(work.email(), verdict.state, verdict.reason,
                                               {.before = {insert}, .after = {update}});
  if (moved && *moved) {
    work.email() = std::move(**moved);
    count(attempt);
    co_return store::Result<>{};
  }
  if (!moved && moved.error().code != ErrorCode::transaction_canceled) co_return store::error_of(moved);
  // The attempt is written down already, or others have the email now. What became of it is true all the
  // same.
  TABELLA_CO_TRY(co_await outbox_.store().put_item(store::Put(table(), to_item(message, attempt))));
  TABELLA_CO_ASSIGN(const auto row, co_await outbox_.find_message(message.id));
  if (row && row->owner != me()) co_return store::Result<>{};
  if (!moved) {
    const Beside beside = row ? Beside{.after = {update}} : Beside{};
    TABELLA_CO_ASSIGN(moved,
                      co_await outbox_.backend().move(work.email(), verdict.state, verdict.reason, beside));
  }
  if (*moved) {
    work.email() = std::move(**moved);
    co_return store::Result<>{};
  }
  // A move whose answer was lost is one of these, too.
  TABELLA_CO_ASSIGN(const auto now, co_await outbox_.backend().find(message.id));
  if (now && now->status == verdict.state) co_return co_await this->update(message);
  co_return store::Result<>{};
}

void Dispatcher::count(const Attempt& attempt) {
  for (const auto& result : attempt.results)
    ++(result.outcome == "delivered"  ? delivered_
       : result.outcome == "deferred" ? deferred_
       : result.outcome == "failed"   ? refused_
                                      : unknown_);
}

// A user that the server does not know is not asked about again.
Async<void> Dispatcher::suppress_unknown_users(const Work& work, const Attempt& attempt) {
  for (const auto& result : attempt.results) {
    if (result.outcome != "failed" || result.step != "recipient" ||
        result.reply.find(" 5.1.1 ") == std::string::npos)
      continue;
    TABELLA_CO_TRY(co_await outbox_.suppressions().add({.address = result.address,
                                                        .reason = "BOUNCE",
                                                        .email = work.message().id,
                                                        .diagnostic = result.reply}));
  }
  co_return store::Result<>{};
}

// ---- Letting go ----

Async<void> Dispatcher::update(const Message& message) {
  auto done = co_await outbox_.store().execute_transaction(
      {.statements = {update_statement(table(), message, me())}});
  // Others have it now.
  if (!done && done.error().code == ErrorCode::transaction_canceled) co_return store::Result<>{};
  if (!done) co_return store::error_of(done);
  co_return store::Result<>{};
}

awaitable<void> Dispatcher::put_off(WorkPtr work, int64_t due) {
  auto& message = work->message();
  outbox_.make_due(message, due);
  if (const auto updated = co_await update(message); !updated)
    log::warning("email {} is left to its lease: {}", message.id, updated.error().message);
  drop(work);
  wake();
}

awaitable<void> Dispatcher::park(WorkPtr work, std::string destination) {
  auto& message = work->message();
  outbox_.make_due(message, outbox_.now());
  message.shard = paused_shard(destination);
  if (const auto updated = co_await update(message); !updated)
    log::warning("email {} is left to its lease: {}", message.id, updated.error().message);
  drop(work);
}

awaitable<void> Dispatcher::release(WorkPtr work) { return put_off(std::move(work), outbox_.now()); }

void Dispatcher::drop(const WorkPtr& work) {
  forget(work->message().id, work);
  // Where there was more than there was room for, the next come when half of it is free.
  if (more_ && held_.size() <= options_.most_held / 2 && lanes_.is_half_empty(work->destination)) wake();
}

void Dispatcher::forget(const std::string& id, const WorkPtr& work) {
  const auto found = held_.find(id);
  if (found == held_.end() || found->second != work) return;
  held_.erase(found);
  --holding_;
}

awaitable<void> Dispatcher::keep_leases() {
  const auto lease = outbox_.options().lease;
  while (!stopping_ || !held_.empty()) {
    co_await store::pause_for(std::min(lease / 10, milliseconds{1'000}));
    std::vector<WorkPtr> old;
    for (const auto& [id, work] : held_)
      if (!work->lost && !work->message().id.empty() && outbox_.clock().elapsed() - work->renewed > lease / 3)
        old.push_back(work);
    for (const auto& work : old) {
      const auto begun = outbox_.clock().elapsed();
      const auto renewed = store::was_made(
          co_await outbox_.store().update_item(store::Update(table(), message_key(work->message().id))
                                                   .set("due", outbox_.now() + lease.count())
                                                   .when(store::equals("owner", me()))));
      if (renewed && *renewed)
        work->renewed = begun;
      else
        work->lost = (renewed && !*renewed) || begun - work->renewed > lease;
    }
    if (stopping_ && running_ <= 1) co_return;
  }
}

void Dispatcher::write_metrics(metrics::Exposition& out) const {
  const auto count = [&](std::string_view result, const metrics::Counter& counter) {
    out.counter("tabella_outbox_recipients_total", "What became of recipients, attempt by attempt",
                static_cast<double>(counter), {{"outcome", result}});
  };
  count("delivered", delivered_);
  count("deferred", deferred_);
  count("failed", refused_);
  count("unknown", unknown_);
  out.counter("tabella_outbox_taken_over_total", "Emails taken over from processes that died",
              static_cast<double>(taken_over_));
  out.gauge("tabella_outbox_held", "Emails that this process works on", static_cast<double>(holding_));
}

}  // namespace tabella::outbox

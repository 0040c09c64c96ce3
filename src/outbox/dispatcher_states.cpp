// What the dispatcher does with an email, by the state that it is in.
#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "outbox/attempts.h"
#include "outbox/callbacks.h"
#include "outbox/dispatcher_work.h"
#include "outbox/intake.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;
using store::ErrorCode;

namespace {

constexpr size_t kMostIntakes = 16;  // at once

}  // namespace

awaitable<void> Dispatcher::handle(WorkPtr work) {
  if (const auto given = co_await give_expiry(*work); !given)
    co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
  switch (work->email().status) {
    case State::accepted:
    case State::intaking: co_return co_await handle_intake(std::move(work));
    case State::ready: {
      if (const auto known = co_await reconcile(work->message()); !known)
        co_return co_await put_off(work, outbox_.now() + kAfterTrouble.count());
      if (co_await is_paused(work)) co_return;
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

// An email that was parked has none.
Async<void> Dispatcher::give_expiry(Work& work) {
  auto& message = work.message();
  if (message.expires || !outbox_.options().time_to_live) co_return store::Result<>{};
  TABELLA_CO_TRY(co_await outbox_.keep_until(message, outbox_.expiry_of(message.send_at)));
  work.email().ttl = message.expires;
  co_return store::Result<>{};
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

}  // namespace tabella::outbox

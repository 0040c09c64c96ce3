// How the dispatcher delivers an email, and what follows from it.
#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "outbox/attempts.h"
#include "outbox/dispatcher_work.h"
#include "outbox/intake.h"
#include "outbox/statements.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;
using store::ErrorCode;

namespace {

constexpr size_t kLongestReason = 2'048;

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

}  // namespace

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
  if (co_await is_paused(work)) co_return false;
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
  const auto verdict = decide(*work, attempt);
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
Dispatcher::Verdict Dispatcher::decide(Work& work, const Attempt& attempt) const {
  auto& message = work.message();
  const auto now = outbox_.clock().now();
  if (message.any(Result::waiting) && now >= message.give_up_at)
    for (auto& recipient : message.recipients)
      if (recipient.result == Result::waiting && !work.paused.contains(domain_of(recipient.address))) {
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

}  // namespace tabella::outbox

#include "outbox/dispatcher.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "net/by_value.h"
#include "outbox/dispatcher_work.h"
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

constexpr milliseconds kShortestRest{5};  // between two looks
// Rows that are passed over because their destination has enough to do, before a look ends: while it is busy,
// and when it comes by from time to time.
constexpr size_t kMostSkipped = 200;
constexpr size_t kMostSkippedAtRest = 5'000;
constexpr std::chrono::seconds kThoroughEvery{20};
constexpr size_t kKeptInMemory = 256 * 1024;  // of one message's content, while it waits

}  // namespace

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
  // Half of the places are for what is found in the index: no destination that many emails are accepted for
  // keeps the others waiting.
  return {.hold = [this] { return holding_ < options_.most_held / 2; },
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
  // What was left by a process before this one that had the store.
  if (!options_.with_store.empty()) {
    const auto until = outbox_.now() + outbox_.options().lease.count();
    for (const auto& shard : all_work_shards())
      spawn([](Dispatcher& self, std::string where, int64_t at) -> Task {
        if (const auto looked = co_await self.look_at(where, at); !looked)
          log::warning("the outbox cannot look for work: {}", looked.error().message);
      }(*this, shard, until));
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
  if (options_.with_store.empty())
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

// However long it is there: it neither expires nor is it given up.
awaitable<void> Dispatcher::park(WorkPtr work, std::string destination) {
  auto& message = work->message();
  outbox_.make_due(message, outbox_.now());
  message.shard = paused_shard(destination);
  auto parked = co_await outbox_.keep_until(message, std::nullopt);
  if (parked) parked = co_await update(message);
  if (!parked) log::warning("email {} is left to its lease: {}", message.id, parked.error().message);
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

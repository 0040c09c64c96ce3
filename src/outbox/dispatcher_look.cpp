// How the dispatcher finds work.
#include <algorithm>

#include "base/log.h"
#include "outbox/dispatcher_work.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;
using store::ErrorCode;

namespace {

constexpr int64_t kPage = 100;           // rows of the index that are read at once
constexpr int64_t kClockMargin = 2'000;  // milliseconds that a lease of others is given beyond its end
constexpr milliseconds kSeenBefore = std::chrono::minutes{10};
constexpr std::chrono::seconds kResumeFor{10};  // for how long others may still pause by what they knew
constexpr std::chrono::minutes kSurelyCreated{10};

}  // namespace

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
  for (const auto& shard : all_work_shards()) {
    if (const auto looked = co_await look_at(shard, outbox_.now()); !looked) {
      log::warning("the outbox cannot look for work: {}", looked.error().message);
      co_return std::nullopt;
    }
  }
  if (options_.with_store.empty() || more_) co_return std::nullopt;
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
  std::map<std::string, size_t> taken;  // by destination, and not in their lanes yet
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
      const auto destination = carrier_.destination_of(row->destination);
      if (!lanes_.has_room(destination, taken[destination])) {
        more_ = true;
        ++skipped;
        continue;
      }
      ++taken[destination];
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

bool Dispatcher::is_left(std::string_view owner) const {
  return !options_.with_store.empty() && owner.starts_with(options_.with_store);
}

bool Dispatcher::may_take(const DueMessage& row, int64_t now) const {
  if (row.owner.empty()) return row.due <= now;
  if (is_left(row.owner)) return true;
  return row.due + kClockMargin <= now;
}

Async<std::optional<int64_t>> Dispatcher::next_due() {
  std::optional<int64_t> next;
  for (const auto& shard : all_work_shards()) {
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
      const auto give_up_at = outbox_.clock().now() + outbox_.options().give_up;
      TABELLA_CO_TRY(store::was_made(
          co_await outbox_.store().update_item(store::Update(table(), message_key(row->id))
                                                   .set("shard", work_shard(*message))
                                                   .set("due", outbox_.now())
                                                   .set("give_up_at", epoch_milliseconds(give_up_at))
                                                   .when(store::equals("shard", row->shard)))));
    }
  }
  wake();
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

#include "journal/appender.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/utf8.h"
#include "journal/head_attributes.h"
#include "store/conditional.h"
#include "store/pause.h"

namespace tabella::journal {

namespace names = head_attributes;
using std::chrono::milliseconds;
using store::Async;

namespace {

constexpr size_t kMostActions = 100;            // of a transaction
constexpr size_t kMostTransaction = 3'500'000;  // bytes; DynamoDB takes 4 MB in its own count
constexpr size_t kMostEvent = 350 * 1024;       // an item has 400 KB, with its keys and what we note down
constexpr size_t kMostTags = 20;
constexpr size_t kMostName = 1024;
constexpr size_t kMostBatchId = 256;

size_t weight_of(const NewEvent& event) {
  size_t weight = event.payload.size() + event.type.size() + event.metadata.size() + event.id.size() +
                  event.manifest.size();
  for (const auto& tag : event.tags) weight += tag.size() + 4;
  return weight;
}

// Names and numbers of a row, and the id of its entity.
size_t row_weight(const Append& append, size_t index) {
  return weight_of(append.events[index]) + 2 * append.entity.pid.size() + append.entity.journal.size() + 300;
}

std::string problem_with_event(const NewEvent& event) {
  if (weight_of(event) > kMostEvent)
    return fmt::format(
        "has {} bytes; an event may have {}. Keep what is larger elsewhere, and its place in the event",
        weight_of(event), kMostEvent);
  if (event.tags.size() > kMostTags) return fmt::format("has more than {} tags", kMostTags);
  for (const auto& tag : event.tags)
    if (auto problem = problem_with_tag(tag); !problem.empty()) return "has a tag that is none: " + problem;
  for (const auto* name : {&event.id, &event.type, &event.manifest})
    if (name->size() > kMostName)
      return fmt::format("has an id, a type or a manifest of more than {} bytes", kMostName);
  for (const auto* text : {&event.id, &event.type, &event.manifest, &event.metadata})
    if (!is_valid_utf8(*text)) return "has an id, a type, a manifest or metadata that is no UTF-8";
  return {};
}

// Which is what the first action of each transaction is about.
bool failed_on_head(const store::Error& error) {
  return !error.reasons.empty() && store::failed_its_condition(error.reasons[0]);
}

// Of a transaction that was cancelled: what no other try would change.
bool is_for_ever(const store::Error& error) {
  return std::ranges::any_of(error.reasons,
                             [](const auto& reason) { return reason.code == "ValidationError"; });
}

}  // namespace

bool may_pass(const store::Error& error) {
  using enum store::ErrorCode;
  return error.code == throttled || error.code == transaction_conflict || error.code == transaction_canceled;
}

std::string problem_with(const Append& append) {
  if (auto problem = problem_with_journal(append.entity.journal); !problem.empty()) return problem;
  if (auto problem = problem_with_pid(append.entity.pid); !problem.empty()) return problem;
  if (append.events.empty()) return "there are no events: an append has at least one";
  if (append.events.size() > Journal::kMostEvents)
    return fmt::format("there are {} events; an append may have {}", append.events.size(),
                       Journal::kMostEvents);
  size_t bytes = 0;
  for (size_t i = 0; i < append.events.size(); ++i) {
    if (const auto problem = problem_with_event(append.events[i]); !problem.empty())
      return fmt::format("event {} of the append {}", i + 1, problem);
    bytes += weight_of(append.events[i]);
  }
  if (bytes > Journal::kMostBytes)
    return fmt::format("the events have {} bytes together; an append may have {}", bytes,
                       Journal::kMostBytes);
  if (append.batch_id.size() > kMostBatchId)
    return fmt::format("the batch id has more than {} bytes", kMostBatchId);
  if (!is_valid_utf8(append.batch_id)) return "the batch id is no UTF-8";
  if (append.epoch.value_or(0) > Journal::kHighestEpoch)
    return fmt::format("an epoch is at most {}: take one with POST …/epoch", Journal::kHighestEpoch);
  if (append.time_to_live && *append.time_to_live <= std::chrono::seconds(0))
    return "a time to live is at least a second";
  return {};
}

Appender::Appender(Journal& journal, Append append)
    : journal_(journal),
      append_(std::move(append)),
      append_id_(make_uuid()),
      deadline_(std::chrono::steady_clock::now() + journal.options_.operation_timeout) {}

Async<AppendOutcome> Appender::run() {
  auto outcome = co_await make();
  // Whatever it failed of, it may have been made before.
  if (!outcome && perhaps_) outcome.error().unsure = true;
  co_return outcome;
}

Async<AppendOutcome> Appender::make() {
  TABELLA_CO_ASSIGN(auto before, co_await repeated());
  if (before) co_return std::move(*before);
  assume_head();
  while (true) {
    if (!head_) TABELLA_CO_TRY(co_await learn_head());
    TABELLA_CO_ASSIGN(const bool made, co_await was_made_before());
    if (made) break;
    const bool is_old = append_.epoch && *append_.epoch < head_->epoch;
    if (head_->staging && !is_old) {
      TABELLA_CO_TRY(co_await wait_for_staging());
    } else {
      TABELLA_CO_ASSIGN(auto refused, co_await refusal());
      if (refused) co_return std::move(*refused);
      TABELLA_CO_TRY(choose_expiry());
      const bool at_once = last_that_fits(first(), 3) >= last();  // its head, counter and batch id
      TABELLA_CO_ASSIGN(const bool done, at_once ? co_await write() : co_await stage());
      if (done) break;
      // What stood in the way may be the same batch, which somebody else has sent at the same time.
      TABELLA_CO_ASSIGN(auto meanwhile, co_await repeated());
      if (meanwhile) co_return std::move(*meanwhile);
    }
    TABELLA_CO_TRY(co_await before_another_try());
  }
  if (journal_.appended_) journal_.appended_(append_.entity, last());
  co_return Appended{.first = first(), .last = last()};
}

// Whoever says which number is the highest is believed until the head itself says otherwise.
void Appender::assume_head() {
  const bool expires = append_.time_to_live || journal_.options_.retention > std::chrono::seconds(0);
  if (const auto number = append_.expected.number(); number.value_or(0) > 0 && !expires)
    head_.emplace().highest = *number;
}

Async<void> Appender::learn_head() {
  TABELLA_CO_ASSIGN(head_, co_await journal_.heads_.find(append_.entity));
  // A row where we wanted to put ours is another program's. If it is of a batch that is not whole, whoever
  // writes it has as much time as one who stages.
  const auto is_over = [this] {
    return journal_.clock_.elapsed() - in_the_way_since_ >= journal_.options_.staging_lease;
  };
  if (!head_ || in_the_way_ > head_->highest) {
    TABELLA_CO_ASSIGN(
        head_, co_await journal_.adopt_up_to(append_.entity, in_the_way_, in_the_way_ > 0 && is_over()));
  }
  head_is_stored_ = head_.has_value();
  if (!head_) head_.emplace();
  co_return store::Result<void>();
}

// What the head says against the append.
Async<std::optional<AppendOutcome>> Appender::refusal() {
  const auto expected = append_.expected.number();
  if (expected && *expected != head_->highest) {  // others may have come that far, or further
    TABELLA_CO_ASSIGN(const auto adopted, co_await journal_.adopt(append_.entity));
    if (adopted) head_ = adopted;
  }
  const bool is_old = append_.epoch && *append_.epoch < head_->epoch;
  const bool is_refused = is_old || (expected && *expected != head_->highest);
  if (!is_refused && tries_ == 0) co_return std::nullopt;
  // Somebody else may have sent the same batch meanwhile.
  TABELLA_CO_ASSIGN(auto before, co_await repeated());
  if (before || !is_refused) co_return before;
  // What stands in the way may be a try of ours that came late.
  TABELLA_CO_ASSIGN(const bool there, perhaps_ ? co_await has_row(*perhaps_) : store::Result<bool>(false));
  if (there) {
    if (journal_.appended_) journal_.appended_(append_.entity, *perhaps_);
    co_return Appended{.first = *perhaps_ - append_.events.size() + 1, .last = *perhaps_};
  }
  co_return is_old ? Conflict{.kind = Conflict::Kind::epoch, .actual = head_->epoch}
                   : Conflict{.kind = Conflict::Kind::version, .actual = head_->highest};
}

Async<std::optional<AppendOutcome>> Appender::repeated() const {
  if (append_.batch_id.empty()) co_return std::nullopt;
  TABELLA_CO_ASSIGN(const auto batch, co_await journal_.heads_.find_batch(append_.entity, append_.batch_id));
  if (!batch) co_return std::nullopt;
  const auto count = batch->last - batch->first + 1;
  if (count != append_.events.size()) co_return Conflict{.kind = Conflict::Kind::batch, .actual = count};
  co_return Appended{.first = batch->first, .last = batch->last, .repeated = true};
}

// Behind an event that stays none can go, or the history would have a hole.
store::Result<void> Appender::choose_expiry() {
  expires_.reset();
  const auto time_to_live = append_.time_to_live.value_or(journal_.options_.retention);
  if (time_to_live == std::chrono::seconds(0)) return {};
  if (head_->expiring_to != head_->highest && head_->deleted_to != head_->highest) {
    if (!append_.time_to_live) return {};
    return store::refuse(
        "the entity has events that stay for ever, so later ones cannot have a time to live: delete "
        "them first, or append without it");
  }
  expires_ = std::max(journal_.clock_.now() + time_to_live, head_->expires.value_or(TimePoint::min()));
  return {};
}

Async<void> Appender::wait_for_staging() {
  const auto staging = *head_->staging;
  const auto now = journal_.clock_.elapsed();
  if (staging.beat != beat_) {
    beat_ = staging.beat;
    silent_since_ = now;
  }
  const bool is_fenced = append_.epoch.value_or(0) > staging.epoch;
  const bool is_mine = staging.append_id == append_id_;  // it came late, and was given up
  if (is_fenced || is_mine || now - silent_since_ >= journal_.options_.staging_lease) {
    const auto taken =
        co_await journal_.take_over(append_.entity, staging, append_.epoch.value_or(staging.epoch));
    if (!taken && !taken.error().unsure && !may_pass(taken.error())) co_return std::unexpected(taken.error());
  }
  head_.reset();
  co_return store::Result<void>();
}

Async<void> Appender::before_another_try() {
  if (std::chrono::steady_clock::now() >= deadline_)
    co_return store::fail(
        store::ErrorCode::unavailable,
        perhaps_
            ? "the store did not say in time whether the append was made: look, or try again with a "
              "batch id or the version that is expected"
            : "others were appending to this entity all the time, and the append was not made: try again");
  const auto most = milliseconds(1) * (1 << std::min(++tries_, 5));
  co_await store::pause_for(
      most / 2 + std::chrono::microseconds(random_bits() % (static_cast<uint64_t>(most.count()) * 500)));
  co_return store::Result<void>();
}

// Its numbers are given out once, so if the head is behind them the try was made, or never will be.
Async<bool> Appender::was_made_before() {
  if (!perhaps_ || head_->highest < *perhaps_) co_return false;
  TABELLA_CO_ASSIGN(const bool there, co_await has_row(*perhaps_));
  if (there) {
    head_.emplace().highest = *perhaps_ - append_.events.size();
    co_return true;
  }
  if (head_->purge_to >= *perhaps_)
    co_return store::fail(store::ErrorCode::unavailable,
                          "the store did not say whether the append was made, and its events would have been "
                          "deleted since");
  perhaps_.reset();
  co_return false;
}

store::Condition Appender::epoch_is_mine() const {
  return store::absent(names::kEpoch) || store::at_most(names::kEpoch, *append_.epoch);
}

store::Condition Appender::head_is_as_known() const {
  auto condition = head_is_stored_ ? highest_is(head_->highest) && store::absent(names::kStagedId)
                                   : store::absent(names::kId);
  return append_.epoch ? std::move(condition) && epoch_is_mine() : condition;
}

store::Condition Appender::is_staging() const {
  auto condition = store::equals(names::kStagedId, staging_id_) && highest_is(head_->highest);
  return append_.epoch ? std::move(condition) && epoch_is_mine() : condition;
}

store::Update Appender::move_head(const store::Condition& when) const {
  auto update = store::Update(journal_.heads_.table(), Heads::key_of(append_.entity))
                    .set(names::kHighest, last())
                    .set(names::kTime, epoch_milliseconds(journal_.clock_.now()))
                    .when(when)
                    .return_old_on_failure();
  if (append_.epoch) update.set(names::kEpoch, *append_.epoch);
  if (expires_) update.set(names::kExpiringTo, last()).set(names::kExpiresAt, epoch_milliseconds(*expires_));
  if (std::ranges::any_of(append_.events, [](const NewEvent& event) { return !event.tags.empty(); }))
    update.set(names::kTagged, true);
  else
    update.remove(names::kTagged);
  return update;
}

void Appender::put_events(Writes& writes, uint64_t from, uint64_t to) const {
  const auto& layout = journal_.layout_;
  const bool staged = last_that_fits(first(), 3) < last();
  Recording recording{.append_id = append_id_,
                      .time = journal_.clock_.now(),
                      .epoch = append_.epoch.value_or(0),
                      .expires = expires_};
  for (auto number = from; number <= to; ++number) {
    const auto index = number - first();
    if (staged) recording.place = {.index = index, .last = last() - first()};
    writes.push_back(
        store::Put(layout.table(), layout.row_of(append_.entity, number, append_.events[index], recording))
            .when(store::absent(layout.key_attribute())));
  }
}

// For those who look for the highest number otherwise, and for who sends the batch again.
void Appender::put_companions(Writes& writes) const {
  for (auto& row : journal_.layout_.high_counters(append_.entity, first(), last()))
    writes.push_back(store::Put(journal_.layout_.table(), std::move(row)));
  if (append_.batch_id.empty()) return;
  writes.push_back(
      store::Put(journal_.heads_.table(),
                 Heads::batch_row(append_.entity, append_.batch_id, {.first = first(), .last = last()},
                                  journal_.clock_.now() + journal_.options_.batch_ids_kept))
          .when(store::absent(names::kId)));
}

uint64_t Appender::last_that_fits(uint64_t from, size_t others) const {
  size_t weight = 1000;
  uint64_t number = from;
  for (; number <= last() && number - from < kMostActions - others; ++number) {
    weight += row_weight(append_, number - first());
    if (weight > kMostTransaction && number > from) break;
  }
  return number - 1;
}

Async<bool> Appender::write() {
  Writes writes;
  writes.reserve(append_.events.size() + 3);
  writes.push_back(move_head(head_is_as_known()));
  put_events(writes, first(), last());
  put_companions(writes);
  TABELLA_CO_ASSIGN(const auto made, co_await transact(std::move(writes), first()));
  if (made == Made::yes) co_return true;
  if (made == Made::perhaps) {
    perhaps_ = last();
    TABELLA_CO_TRY(co_await learn_head());
    co_return co_await was_made_before();
  }
  head_ = std::exchange(found_, std::nullopt);
  head_is_stored_ = true;
  co_return false;
}

Async<Appender::Made> Appender::transact(Writes writes, uint64_t from) {
  auto result = co_await journal_.store_.transact_write_items({.writes = std::move(writes)});
  if (result) co_return Made::yes;
  const auto& error = result.error();
  if (error.unsure) co_return Made::perhaps;
  if (!may_pass(error) || is_for_ever(error)) co_return store::error_of(result);
  const auto failed = std::ranges::find_if(
      error.reasons, [](const auto& reason) { return store::failed_its_condition(reason); });
  if (failed == error.reasons.end()) co_return Made::later;
  if (!failed_on_head(error))
    note_in_the_way(from + static_cast<uint64_t>(failed - error.reasons.begin()) - 1);
  else if (failed->item)
    found_ = Heads::head_of(*failed->item);
  co_return Made::no;
}

void Appender::note_in_the_way(uint64_t number) {
  if (number > last()) return;  // not an event: somebody else has sent the same batch
  if (number != in_the_way_) in_the_way_since_ = journal_.clock_.elapsed();
  in_the_way_ = number;
}

Async<bool> Appender::has_row(uint64_t number) const {
  TABELLA_CO_ASSIGN(const auto step, co_await journal_.layout_.read(journal_.store_, append_.entity, number,
                                                                    number, Direction::forward));
  co_return !step.events.empty() && step.events.front().append_id() == append_id_;
}

Async<AppendOutcome> Journal::append(Append append) {
  if (auto problem = problem_with(append); !problem.empty()) co_return store::refuse(std::move(problem));
  Appender appender(*this, std::move(append));
  co_return co_await appender.run();
}

}  // namespace tabella::journal

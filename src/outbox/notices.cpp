#include "outbox/notices.h"

#include <stdexcept>

#include "base/log.h"
#include "outbox/store_backend.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;

namespace {

constexpr const char* kMarks = "#mark";
constexpr milliseconds kFollowEvery{500};
constexpr milliseconds kAfterFailure{2'000};
constexpr milliseconds kStep{100};
constexpr size_t kChangesAtOnce = 500;

item::Item mark_key(const std::string& name) { return store::Row().set("id", kMarks).set("part", name); }

}  // namespace

awaitable<void> Notices::handle(std::string shard, std::span<const store::StreamRecord> records) {
  if (const auto counted = co_await counts_.count(shard, records); !counted)
    throw std::runtime_error(counted.error().message);
  for (const auto& record : records) {
    const auto change = to_change(record);
    if (!change || change->ours) continue;
    if (const auto noticed = co_await notice(change->id); !noticed)
      throw std::runtime_error(noticed.error().message);
  }
}

Async<void> Notices::notice(const std::string& id) {
  TABELLA_CO_ASSIGN(const auto email, co_await outbox_.backend().find(id));
  if (!email) co_return store::Result<>{};
  co_return co_await outbox_.adopt(*email);
}

awaitable<void> Notices::sweep() {
  for (; !stopping_; co_await rest(kAfterFailure)) {
    const auto done = co_await sweep_once();
    if (done) co_return;
    log::warning("emails that were there before cannot be looked for: {}", done.error().message);
  }
}

Async<void> Notices::sweep_once() {
  TABELLA_CO_ASSIGN(const auto swept, co_await read_mark("swept"));
  if (!swept.empty()) co_return store::Result<>{};
  if (emails_.empty()) TABELLA_CO_TRY(co_await follow_began());
  TABELLA_CO_ASSIGN(const auto began, co_await stream_began());
  std::map<State, int64_t> counts;
  for (const auto state : kStates) {
    TABELLA_CO_ASSIGN(counts[state], co_await sweep_state(state, began));
  }
  if (stopping_) co_return store::Result<>{};
  if (!emails_.empty())
    TABELLA_CO_TRY(co_await put_counts_before(outbox_.store(), outbox_.options().messages, counts));
  co_return co_await write_mark("swept", "yes");
}

// What is added between the look at a state and the first position would be seen by neither: the position
// comes first. The stream of a table has all that was written since it is there.
Async<void> Notices::follow_began() {
  for (; !stopping_; co_await rest(kStep)) {
    TABELLA_CO_ASSIGN(const auto position, co_await read_mark("position"));
    if (!position.empty()) break;
  }
  co_return store::Result<>{};
}

Async<TimePoint> Notices::stream_began() {
  if (emails_.empty()) co_return TimePoint::max();
  TABELLA_CO_ASSIGN(const auto table, co_await outbox_.store().describe_table(emails_));
  if (!table.stream_arn) co_return TimePoint::max();
  TABELLA_CO_ASSIGN(const auto stream, co_await outbox_.store().describe_stream({.arn = *table.stream_arn}));
  co_return stream.created;
}

// How many of them have not changed since then: the stream knows nothing of them.
Async<int64_t> Notices::sweep_state(State state, TimePoint began) {
  EmailPage page;
  int64_t before = 0;
  do {
    TABELLA_CO_ASSIGN(page, co_await outbox_.backend().list(state, 100, std::move(page.next)));
    for (const auto& email : page.emails) {
      if (email.updated_at < began) ++before;
      TABELLA_CO_TRY(co_await outbox_.adopt(email));
    }
    co_await store::pause_for(milliseconds{1});
  } while (!page.next.empty() && !stopping_);
  co_return before;
}

awaitable<void> Notices::follow() {
  std::string position;
  bool known = false;
  while (!stopping_) {
    store::Result<> done;
    if (!known) {
      auto mark = co_await read_mark("position");
      known = mark.has_value();
      if (mark) position = std::move(*mark);
      if (!mark) done = store::error_of(mark);
    }
    size_t found = 0;
    if (done) {
      auto changes = co_await outbox_.backend().changes(position, kChangesAtOnce);
      if (!changes) done = store::error_of(changes);
      if (done)
        for (const auto& change : changes->changes)
          if (done && !change.ours) done = co_await notice(change.id);
      if (done && changes->position != position) {
        found = changes->changes.size();
        position = std::move(changes->position);
        done = co_await write_mark("position", position);
      }
    }
    if (!done) log::warning("changes by other programs cannot be read: {}", done.error().message);
    if (found < kChangesAtOnce) co_await rest(done ? kFollowEvery : kAfterFailure);
  }
}

awaitable<void> Notices::rest(milliseconds length) {
  for (; length > milliseconds{0} && !stopping_; length -= kStep)
    co_await store::pause_for(std::min(length, kStep));
}

Async<std::string> Notices::read_mark(std::string name) {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await outbox_.store().get_item(
                        {.table = outbox_.options().messages, .key = mark_key(name), .consistent = true}));
  co_return found.item ? store::text_of(*found.item, "value") : std::string();
}

Async<void> Notices::write_mark(std::string name, std::string value) {
  TABELLA_CO_TRY(co_await outbox_.store().put_item(store::Put(
      outbox_.options().messages, store::Row().set("id", kMarks).set("part", name).set("value", value))));
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

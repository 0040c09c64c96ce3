#include "outbox/pauses.h"

#include "base/text.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::outbox {

using store::Async;
using store::Row;

namespace {

constexpr const char* kPausePartition = "#pause";
constexpr std::chrono::seconds kKnownFor{1};

item::Item pause_key(const std::string& destination) {
  return Row().set("id", kPausePartition).set("part", destination);
}

}  // namespace

Async<void> Pauses::pause(std::string destination, std::string reason) {
  destination = lower(destination);
  TABELLA_CO_TRY(
      co_await store_.put_item(store::Put(table_, Row()
                                                      .set("id", kPausePartition)
                                                      .set("part", destination)
                                                      .set("since", epoch_milliseconds(clock_.now()))
                                                      .set("reason", reason))));
  const std::lock_guard lock(mutex_);
  known_at_.reset();
  co_return store::Result<>{};
}

Async<bool> Pauses::resume(std::string destination) {
  TABELLA_CO_ASSIGN(
      const auto made,
      store::was_made(co_await store_.update_item(store::Update(table_, pause_key(lower(destination)))
                                                      .set("resuming", true)
                                                      .set("resumed", epoch_milliseconds(clock_.now()))
                                                      .when(store::exists("id")))));
  const std::lock_guard lock(mutex_);
  known_at_.reset();
  co_return made;
}

// Only where it was not paused again meanwhile.
Async<void> Pauses::forget(std::string destination) {
  TABELLA_CO_TRY(store::was_made(co_await store_.delete_item(
      store::Delete(table_, pause_key(destination)).when(store::equals("resuming", true)))));
  const std::lock_guard lock(mutex_);
  known_at_.reset();
  co_return store::Result<>{};
}

Async<std::map<std::string, Pause>> Pauses::all() {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(store_, store::Query(table_).partition("id", kPausePartition).consistent()));
  std::map<std::string, Pause> pauses;
  for (const auto& row : rows) {
    Pause pause{.destination = store::text_of(row, "part"),
                .since = time_at(store::number_of(row, "since")),
                .reason = store::text_of(row, "reason"),
                .resuming = store::flag_of(row, "resuming"),
                .resumed = time_at(store::number_of(row, "resumed"))};
    pauses.emplace(pause.destination, std::move(pause));
  }
  co_return pauses;
}

Async<std::map<std::string, Pause>> Pauses::lately() {
  {
    const std::lock_guard lock(mutex_);
    if (known_at_ && clock_.elapsed() - *known_at_ < kKnownFor) co_return known_;
  }
  const auto now = clock_.elapsed();
  TABELLA_CO_ASSIGN(auto pauses, co_await all());
  const std::lock_guard lock(mutex_);
  known_ = pauses;
  known_at_ = now;
  co_return pauses;
}

}  // namespace tabella::outbox

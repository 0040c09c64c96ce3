#include "library/history.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "journal/replay.h"
#include "store/pause.h"
#include "store/time_slice.h"

namespace tabella {
namespace {

using std::chrono::milliseconds;

// How often an append is tried that may have been made: each time for as long as the journal's operations may
// take.
constexpr int kTries = 4;
constexpr milliseconds kPause{50};

}  // namespace

std::unexpected<Failure> History::unreadable(std::string what) const {
  return failed(Failure::Kind::unreadable,
                fmt::format("{} of journal {}: {}", entity_.pid, entity_.journal, what));
}

AsyncOutcome<> History::recover(Reader reader) {
  current_ = false;
  version_ = snapshot_version_ = 0;
  bad_snapshot_.clear();
  reader.begin();
  TABELLA_CO_ASSIGN(epoch_, co_await journals_.journal.take_epoch(entity_));
  if (reader.load) TABELLA_CO_TRY(co_await load_snapshot(reader));
  TABELLA_CO_TRY(co_await replay(reader));
  current_ = true;
  co_return Outcome<>();
}

AsyncOutcome<> History::load_snapshot(const Reader& reader) {
  TABELLA_CO_ASSIGN(const auto newest, co_await journals_.snapshots.newest(entity_, {}));
  if (!newest) co_return Outcome<>();
  if (const auto loaded = reader.load(*newest); !loaded) {
    bad_snapshot_ =
        fmt::format("; its snapshot of event {} is of no use: {}", newest->number, loaded.error().message);
    log::warning("{} of journal {} is read from its first event on{}", entity_.pid, entity_.journal,
                 bad_snapshot_);
    reader.begin();
    co_return Outcome<>();
  }
  version_ = snapshot_version_ = newest->number;
  co_return Outcome<>();
}

AsyncOutcome<> History::replay(const Reader& reader) {
  auto replay = journals_.journal.replay(entity_, {.from = version_ + 1});
  store::TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(const auto events, co_await replay.next());
    if (events.empty()) break;
    for (const auto& event : events) {
      TABELLA_CO_TRY(check_whole(replay.extent(), event.number()));
      TABELLA_CO_TRY(take_in(event, reader));
      co_await slice.yield_if_over();
    }
  }
  co_return check_end(replay.extent());
}

// A replay begins where it can, and a state that lacks what came before would look like a whole one. Besides,
// numbers in front of `next` may be left out that are of a batch that another program did not finish, which
// nobody ever sees, or whose rows are marked as deleted; no layout has both.
Outcome<> History::check_whole(const journal::Extent& extent, uint64_t next) const {
  const auto deleted_to = (journals_.journal.layout().marks_deleted() ? next : extent.lowest) - 1;
  if (deleted_to <= version_) return {};
  return unreadable(fmt::format("events {} to {} are not there any more, and no snapshot has them{}",
                                version_ + 1, deleted_to, bad_snapshot_));
}

Outcome<> History::take_in(const journal::Event& event, const Reader& reader) {
  if (const auto applied = reader.apply(event); !applied)
    return unreadable(fmt::format("event {}: {}", event.number(), applied.error().message));
  version_ = event.number();
  return {};
}

Outcome<> History::check_end(const journal::Extent& extent) {
  if (version_ > extent.highest)
    return unreadable(
        fmt::format("there is a snapshot of event {}, but the last event is {}", version_, extent.highest));
  const bool begins_from_nothing = version_ == 0 && bad_snapshot_.empty();
  if (!begins_from_nothing) TABELLA_TRY(check_whole(extent, extent.highest + 1));
  version_ = extent.highest;
  return {};
}

AsyncOutcome<History::Persisted> History::persist(std::vector<journal::NewEvent> events,
                                                  std::string command_id) {
  if (events[0].id.empty()) events[0].id = make_uuid();
  journal::Append wanted{.entity = entity_,
                         .events = std::move(events),
                         .expected = journal::Expected::version(version_),
                         .epoch = epoch_,
                         .batch_id = command_id};
  TABELLA_CO_ASSIGN(const auto outcome, co_await append(std::move(wanted)));
  if (const auto* conflict = std::get_if<journal::Conflict>(&outcome)) {
    if (conflict->kind != journal::Conflict::Kind::batch) co_return superseded(*conflict);
    // The command was decided otherwise the first time: that is its outcome.
    TABELLA_CO_ASSIGN(const auto earlier, co_await find(std::move(command_id)));
    co_return earlier.value_or(Persisted{.last = version_, .repeated = true});
  }
  const auto& appended = std::get<journal::Appended>(outcome);
  if (appended.repeated) co_return settle({.first = appended.first, .last = appended.last});
  version_ = appended.last;
  co_return Persisted{.last = appended.last};
}

History::Persisted History::settle(journal::Batch earlier) {
  if (earlier.last > version_) current_ = false;  // with events that we do not know
  return {.last = earlier.last, .repeated = true};
}

AsyncOutcome<journal::AppendOutcome> History::append(journal::Append append) {
  bool unsure = false;
  for (int tries = 1;; ++tries) {
    auto outcome = co_await journals_.journal.append(append);
    if (outcome) {
      // What stands in the way, or was there before, may be what was asked for.
      const auto* appended = std::get_if<journal::Appended>(&*outcome);
      if (appended ? appended->repeated && appended->first == version_ + 1 : unsure) {
        TABELLA_CO_ASSIGN(const bool made, co_await is_there(append));
        if (made) co_return journal::Appended{version_ + 1, version_ + append.events.size()};
      }
      co_return std::move(*outcome);
    }
    unsure = unsure || outcome.error().unsure;
    if (!unsure) co_return store::error_of(outcome);
    if (tries == kTries) {
      current_ = false;
      co_return failed(
          Failure::Kind::unknown,
          fmt::format("it is not known whether the events of {} of journal {} were persisted: {}",
                      entity_.pid, entity_.journal, outcome.error().message));
    }
    co_await store::pause_for(kPause);
  }
}

// Whether the events of this very append come behind version(). A program may give the same id again to what
// it decides again, but an epoch is one instance's alone.
AsyncOutcome<bool> History::is_there(const journal::Append& append) {
  auto replay = journals_.journal.replay(entity_, {.from = version_ + 1, .to = version_ + 1});
  auto found = co_await replay.next();
  if (!found) {
    current_ = false;
    co_return failed(Failure::Kind::unknown, std::move(found.error().message));
  }
  co_return !found->empty() && (*found)[0].id() == append.events[0].id && (*found)[0].epoch() == epoch_;
}

std::unexpected<Failure> History::superseded(const journal::Conflict& conflict) {
  current_ = false;
  const bool by_epoch = conflict.kind == journal::Conflict::Kind::epoch;
  return failed(
      Failure::Kind::superseded,
      by_epoch
          ? fmt::format("another instance has taken over {} of journal {}: its epoch is {}, ours {}; recover "
                        "it and decide anew",
                        entity_.pid, entity_.journal, conflict.actual, epoch_)
          : fmt::format(
                "somebody else has written to {} of journal {}: its last event is {}, that we know {}; "
                "recover it and decide anew",
                entity_.pid, entity_.journal, conflict.actual, version_));
}

AsyncOutcome<std::optional<History::Persisted>> History::find(std::string command_id) {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await journals_.journal.heads().find_batch(entity_, std::move(command_id)));
  if (!found) co_return std::nullopt;
  co_return settle(*found);
}

boost::asio::awaitable<void> History::save_snapshot(std::function<std::string()> save) {
  journal::Snapshot snapshot{.number = version_, .time = journals_.clock.now()};
  try {
    snapshot.payload = save();
  } catch (const std::exception& error) {
    log_without_snapshot(error.what());
    co_return;
  } catch (...) {
    log_without_snapshot("making it has thrown something that is no std::exception");
    co_return;
  }
  const auto saved = co_await journals_.snapshots.save(entity_, std::move(snapshot));
  if (saved)
    snapshot_version_ = version_;
  else
    log_without_snapshot(saved.error().message);
}

void History::log_without_snapshot(std::string_view why) const {
  log::warning("no snapshot of {} of journal {}: {}", entity_.pid, entity_.journal, why);
}

}  // namespace tabella

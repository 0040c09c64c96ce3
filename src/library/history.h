// The history of one entity, as its one writer has it: read whole at first, then appended to. What
// library/entity.h does without knowing the types of states and events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "journal/journal.h"
#include "journal/snapshots.h"
#include "library/failure.h"

namespace tabella {

// Where entities are kept. All of it outlives whoever uses it.
struct Journals {
  journal::Journal& journal;
  journal::Snapshots& snapshots;
  const Clock& clock;
};

// One call at a time.
class History {
 public:
  History(Journals journals, journal::Entity entity) : journals_(journals), entity_(std::move(entity)) {}

  const journal::Entity& entity() const { return entity_; }
  // The number of the last event; once recovered.
  uint64_t version() const { return version_; }
  uint64_t epoch() const { return epoch_; }
  // Recovered, and nothing was noticed since that makes it necessary again.
  bool is_current() const { return current_; }
  void set_stale() { current_ = false; }

  struct Reader {
    std::function<void()> begin;  // from nothing
    // None: there are no snapshots. Where it does not take one, all events are read instead.
    std::function<Checked<>(const journal::Snapshot&)> load;
    std::function<Checked<>(const journal::Event&)> apply;
  };
  // Takes a new epoch, which ends what all other writers can do, and then reads the newest snapshot and the
  // events behind it. An entity whose events were all deleted, and that has no snapshot, begins from nothing.
  AsyncOutcome<> recover(Reader reader);

  struct Persisted {
    uint64_t last = 0;
    bool repeated = false;  // by an earlier command of this id, with the events of that time
  };
  // Appends behind version(), and moves it. Where an answer is lost it finds out whether they are there: by
  // the command's id or, where that is empty, by the id of the first event.
  AsyncOutcome<Persisted> persist(std::vector<journal::NewEvent> events, std::string command_id);
  // What became of an earlier command with this id.
  AsyncOutcome<std::optional<Persisted>> find(std::string command_id);

  uint64_t snapshot_version() const { return snapshot_version_; }
  // Of version(). That it fails, or that `save` throws, is logged: it is a help, not the history.
  boost::asio::awaitable<void> save_snapshot(std::function<std::string()> save);

 private:
  AsyncOutcome<> load_snapshot(const Reader& reader);
  AsyncOutcome<> replay(const Reader& reader);
  Outcome<> check_whole(const journal::Extent& extent, uint64_t next) const;
  Outcome<> take_in(const journal::Event& event, const Reader& reader);
  Outcome<> check_end(const journal::Extent& extent);
  AsyncOutcome<journal::AppendOutcome> append(journal::Append append);
  AsyncOutcome<bool> is_there(const journal::Append& append);
  Persisted settle(journal::Batch earlier);
  void log_without_snapshot(std::string_view why) const;
  std::unexpected<Failure> superseded(const journal::Conflict& conflict);
  std::unexpected<Failure> unreadable(std::string what) const;

  const Journals journals_;
  const journal::Entity entity_;
  bool current_ = false;
  uint64_t epoch_ = 0;
  uint64_t version_ = 0;
  uint64_t snapshot_version_ = 0;
  std::string bad_snapshot_;  // why the newest snapshot was not taken
};

}  // namespace tabella

// The outbox's table in DynamoDB.
//
//   Id, Status (keys)  one row per state that the email has reached, and one with Status "_META"
//   Attributes         a map: UpdatedAt, Reason, EmlFilePath, PayloadFilePath; in _META also Latest, the
//   state TTL                in seconds, on all rows; older programs have it in Attributes, which is read too
//   Worker             on rows of states that we wrote: which of our moves it was
//
// Every move is one transaction of two statements: an UPDATE of _META and an INSERT of the state's row. For
// programs that only know those two the row is the lock: whoever comes second finds it there. We also ask
// that _META still has the state that we come from, so a row that is left from an earlier visit can be
// replaced.
//
// How many emails are in which state is counted from the table's stream (outbox/counts.h), by whomever they
// are moved.
#pragma once

#include <atomic>
#include <string>

#include "base/clock.h"
#include "outbox/backend.h"
#include "store/tables.h"

namespace tabella::outbox {

inline constexpr const char* kMeta = "_META";
inline constexpr const char* kStatusIndex = "StatusIndex";

// The email of a _META row, or of a row of the index; nothing if it is none.
std::optional<Email> to_email(item::ItemView meta);

// What a record of the table's stream says, if it is of a row of a state that is new or replaced.
std::optional<Change> to_change(const store::StreamRecord& record);

// Thread-safe.
class StoreBackend final : public Backend {
 public:
  // `worker` is unlike that of all others; an empty one is taken for another program, whose changes are
  // noticed. `counts` is the table that the counts are in.
  StoreBackend(store::Store& store, const Clock& clock, std::string table, std::string counts,
               std::string worker);
  static store::TablePlan plan(const std::string& table);

  store::Async<bool> create(Email email, Beside beside) override;
  store::Async<std::optional<Email>> move(Email email, State to, std::string reason, Beside beside) override;
  store::Async<std::optional<Email>> find(std::string id) override;
  store::Async<std::vector<Step>> history(std::string id) override;
  store::Async<EmailPage> list(State status, size_t limit, std::string from) override;
  store::Async<std::map<State, int64_t>> counts() override;
  store::Async<void> keep_until(std::string id, std::optional<int64_t> second) override;
  store::Async<bool> remove(std::string id) override;
  // The position is one iterator per shard, and holds for as long as those do.
  store::Async<Changes> changes(std::string position, size_t most) override;

 private:
  // A move on its way: what it is to be, and the name of the write.
  struct Moving {
    Email from;
    Email to;
    std::string write;
  };
  enum class Entering { first, again };
  // What stood in its way, if something did.
  enum class Hindrance { none, other_state, row_there, row_missing };

  std::string next_write();
  store::Statement update_meta(const Moving& moving) const;
  store::Statement insert_row(const Email& email, std::string_view status, const std::string& write) const;
  store::Statement replace_row(const Moving& moving) const;
  store::Statement delete_row(const std::string& id, State state) const;
  store::Async<Hindrance> try_move(const Moving& moving, Entering entering, const Beside& beside);
  // Whether that write is there, whose answer was lost.
  store::Async<bool> was_written(const std::string& id, State state, const std::string& write);
  store::Async<std::vector<item::Item>> rows_of(const std::string& id);
  store::Async<std::vector<std::string>> open_iterators();
  store::Async<std::string> stream_arn();

  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  const std::string counts_;
  const std::string worker_;
  std::atomic<uint64_t> writes_{0};
};

}  // namespace tabella::outbox

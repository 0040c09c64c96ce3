// One append on its way: as one transaction, or staged where it takes several.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "store/rows.h"

namespace tabella::journal {

// What is wrong with it, as a sentence; empty: nothing.
std::string problem_with(const Append& append);

// On one thread, for one run().
class Appender {
 public:
  Appender(Journal& journal, Append append);

  store::Async<AppendOutcome> run();
  // Where run() has failed: a try whose answer was lost may take effect, or has done so.
  bool may_have_been_made() const { return perhaps_.has_value(); }

 private:
  using Writes = std::vector<store::TransactWrite>;

  uint64_t first() const { return head_->highest + 1; }
  uint64_t last() const { return head_->highest + append_.events.size(); }

  void assume_head();
  store::Async<void> learn_head();
  store::Async<std::optional<AppendOutcome>> refusal();
  store::Async<std::optional<AppendOutcome>> repeated() const;
  store::Result<void> choose_expiry();
  store::Async<void> wait_for_staging();
  store::Async<void> before_another_try();

  // What transactions are made of.
  store::Condition head_is_as_known() const;
  store::Condition epoch_is_mine() const;
  store::Condition is_staging() const;
  store::Update move_head(const store::Condition& when) const;
  void put_events(Writes& writes, uint64_t from, uint64_t to) const;
  void put_companions(Writes& writes) const;
  // The last number from `from` on for which a transaction has room that has so many more actions.
  uint64_t last_that_fits(uint64_t from, size_t others) const;

  // Each says whether it was done. If not, the head is to be learned again; what cannot be done at all is an
  // error.
  store::Async<bool> write();
  store::Async<bool> stage();
  store::Async<bool> begin_staging();
  store::Async<bool> stage_rows(uint64_t from, uint64_t to);
  store::Async<bool> commit_staged(uint64_t from);
  store::Async<bool> write_staged(uint64_t proof, std::function<Writes()> make);
  store::Async<void> abandon_staging();

  // no: a condition failed; later: the store did not get to it; perhaps: its answer was lost.
  enum class Made { yes, no, later, perhaps };
  store::Async<Made> transact(Writes writes);
  store::Async<bool> has_row(uint64_t number) const;

  Journal& journal_;
  const Append append_;
  const std::string append_id_;
  const std::chrono::steady_clock::time_point deadline_;
  std::optional<Head> head_;         // as it is believed to be
  bool head_is_stored_ = true;       // else there is none yet
  bool may_be_adopted_ = false;      // there may be rows of others behind the head
  std::optional<Head> found_;        // the head that a transaction failed on
  std::optional<uint64_t> perhaps_;  // a try that may have been made would have put this row
  std::optional<TimePoint> expires_;
  std::string beat_;  // of somebody else's staging, and since when it is the same
  Elapsed silent_since_{};
  int tries_ = 0;
};

}  // namespace tabella::journal

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
// Of a transaction: that another try may do better.
bool may_pass(const store::Error& error);

// On one thread, for one run().
class Appender {
 public:
  Appender(Journal& journal, Append append);

  store::Async<AppendOutcome> run();

 private:
  using Writes = std::vector<store::TransactWrite>;

  uint64_t first() const { return head_->highest + 1; }
  uint64_t last() const { return head_->highest + append_.events.size(); }

  store::Async<AppendOutcome> make();
  void assume_head();
  store::Async<void> learn_head();
  store::Async<std::optional<AppendOutcome>> refusal();
  store::Async<std::optional<AppendOutcome>> repeated() const;
  store::Result<void> choose_expiry();
  store::Async<void> wait_for_staging();
  store::Async<void> before_another_try();
  // Whether a try whose answer was lost was made after all. Asked once the head is known.
  store::Async<bool> was_made_before();

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
  store::Async<bool> write_staged(uint64_t from, uint64_t to, std::function<Writes()> make);
  store::Async<bool> abandon_staging();

  // no: a condition failed; later: the store did not get to it; perhaps: its answer was lost.
  enum class Made { yes, no, later, perhaps };
  // `from` is the number of the first event in it, which comes behind the head.
  store::Async<Made> transact(Writes writes, uint64_t from);
  void note_in_the_way(uint64_t number);
  store::Async<bool> has_row(uint64_t number) const;

  Journal& journal_;
  const Append append_;
  const std::string append_id_;
  std::string staging_id_;  // of this try to stage: what is late of one before it comes to nothing
  const std::chrono::steady_clock::time_point deadline_;
  std::optional<Head> head_;    // as it is believed to be
  bool head_is_stored_ = true;  // else there is none yet
  std::optional<Head> found_;   // the head that a transaction failed on
  uint64_t in_the_way_ = 0;     // somebody else's row, behind the head; 0: none
  Elapsed in_the_way_since_{};
  std::optional<uint64_t> perhaps_;  // the last event's row, of a try that may have been made
  std::optional<TimePoint> expires_;
  std::string beat_;  // of somebody else's staging, and since when it is the same
  Elapsed silent_since_{};
  int tries_ = 0;
};

}  // namespace tabella::journal

// A journal for one test: on every store of the contract (contract/contract.h), in both layouts.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "contract/contract.h"
#include "journal/faulty_store.h"
#include "journal/foreign_rows.h"
#include "journal/journal.h"
#include "journal/replay.h"
#include "store/rows.h"
#include "store/tables.h"
#include "support/run.h"

namespace tabella::journal {

inline constexpr const char* kEventsTable = "events";
inline constexpr const char* kHeadsTable = "heads";
inline const Entity kCart{.journal = "shop", .pid = "cart|1"};

// "1-3" where events were appended, "1-3 again", "version 5" where something else was the case, or what went
// wrong.
std::string outcome_of(const store::Result<AppendOutcome>& outcome);

// count events: "1", "2", …, from `first` on.
std::vector<NewEvent> events(size_t count, size_t first = 1);
// "1" … "3"; and from the last to the first where the second is less.
std::vector<std::string> numbers(uint64_t from, uint64_t to);

class JournalContract : public testing::TestWithParam<std::tuple<contract::Implementation, Kind>> {
 protected:
  JournalContract();

  template <class T>
  static store::Result<T> run(store::Async<T> call) {
    return test::run(std::move(call));
  }

  Kind kind() const { return std::get<1>(GetParam()); }
  store::Store& store() { return subject_->store(); }
  Journal::Options options() const;
  // Another process: a journal of its own over the same tables, at whose store things can go wrong.
  struct Process {
    Process(store::Store& behind, const Clock& clock, const Layout& layout, Journal::Options options)
        : store(behind), journal(store, clock, layout, std::move(options)) {}
    test::FaultyStore store;
    Journal journal;
  };
  std::unique_ptr<Process> process(Journal::Options options);
  std::unique_ptr<Process> process() { return process(options()); }

  std::string append(Append append) { return append_to(journal(), std::move(append)); }
  static std::string append_to(Journal& journal, Append append) {
    return outcome_of(run(journal.append(std::move(append))));
  }
  std::string append(size_t count, Expected expected = Expected::any());
  // Payloads of the range, or what went wrong behind them.
  static std::vector<std::string> read_from(const Journal& journal, Range range,
                                            const Entity& entity = kCart);
  std::vector<std::string> read(Range range = {}) { return read_from(journal(), range); }
  std::vector<std::string> read_backward(Range range = {}) {
    range.direction = Direction::backward;
    return read(range);
  }
  Extent extent() { return run(journal().extent(kCart)).value(); }
  Head head() { return run(journal().heads().find(kCart)).value().value(); }

  // At the table of events itself.
  bool has_row(uint64_t number);
  size_t count_rows(const std::string& table);
  void remove_row(uint64_t number);
  void put(const std::string& table, item::Item row);
  std::optional<item::Item> get(const std::string& table, item::Item key);

  // As Akka's or Pekko's plugin does.
  void put_foreign(uint64_t number, std::optional<Event::BatchPlace> place = {});
  // A batch of `count` from `first` on, without those that are missing.
  void put_foreign_batch(uint64_t first, uint64_t count, const std::vector<uint64_t>& missing = {});
  // Says that all below is deleted, and leaves the rows.
  void put_foreign_low(uint64_t lowest);

  void advance(std::chrono::milliseconds by) { clock_.advance(by); }
  Journal& journal() { return process_->journal; }
  Layout& layout() { return *layout_; }
  contract::Subject& subject() { return *subject_; }
  ManualClock& clock() { return clock_; }

 private:
  std::unique_ptr<contract::Subject> subject_;
  // The journal's own, which can be moved on every store.
  ManualClock clock_;
  const std::unique_ptr<Layout> layout_;
  std::unique_ptr<Process> process_;
};

#define TABELLA_JOURNAL_CONTRACT(FIXTURE)                                                   \
  INSTANTIATE_TEST_SUITE_P(On, FIXTURE,                                                     \
                           testing::Combine(testing::ValuesIn(contract::implementations()), \
                                            testing::Values(Kind::blocks, Kind::keys)),     \
                           [](const auto& parameter) {                                      \
                             return std::get<0>(parameter.param).name + "_" +               \
                                    name_of(std::get<1>(parameter.param));                  \
                           })

}  // namespace tabella::journal

// Reading, deleting, confirming, and what expires.
#include <thread>

#include "journal/journal_fixture.h"

namespace tabella::journal {
namespace {

using std::chrono::seconds;

class Reading : public JournalContract {
 protected:
  static std::string hole_at(uint64_t number) {
    return fmt::format("event {} of cart|1 is missing, and was not deleted: its history has a hole", number);
  }
  uint64_t remove_to(uint64_t to, bool permanently = false) {
    return run(journal().delete_to(kCart, to, permanently)).value();
  }
  static std::vector<std::string> with(std::vector<std::string> texts, std::string more) {
    texts.push_back(std::move(more));
    return texts;
  }
};
TABELLA_JOURNAL_CONTRACT(Reading);

TEST_P(Reading, FindsNothingWhereNothingIs) {
  EXPECT_EQ(read(), std::vector<std::string>());
  EXPECT_EQ(read_backward(), std::vector<std::string>());
  EXPECT_EQ(append(5), "1-5");
  EXPECT_EQ(read({.from = 6}), std::vector<std::string>());
  EXPECT_EQ(read({.from = 4, .to = 3}), std::vector<std::string>());
  EXPECT_EQ(read({.from = 0, .to = 0}), std::vector<std::string>());
}

TEST_P(Reading, ReadsRangesOverTheBordersOfBlocks) {
  EXPECT_EQ(append(250), "1-250");
  for (const uint64_t from : {1u, 99u, 100u, 101u, 199u, 200u, 201u, 250u})
    for (const uint64_t to : {1u, 98u, 99u, 100u, 101u, 199u, 200u, 250u, 1000u}) {
      const auto end = std::min<uint64_t>(to, 250);
      SCOPED_TRACE(fmt::format("{}-{}", from, to));
      EXPECT_EQ(read({.from = from, .to = to}),
                from <= end ? numbers(from, end) : std::vector<std::string>());
      EXPECT_EQ(read_backward({.from = from, .to = to}),
                from <= end ? numbers(end, from) : std::vector<std::string>());
    }
}

TEST_P(Reading, EndsWhereTheEntityEndedWhenItBegan) {
  EXPECT_EQ(append(150), "1-150");
  auto replay = journal().replay(kCart, {});
  size_t count = run(replay.next()).value().size();
  EXPECT_EQ(append(200), "151-350");
  while (true) {
    const auto some = run(replay.next()).value();
    if (some.empty()) break;
    count += some.size();
  }
  EXPECT_EQ(count, 150u);
  EXPECT_EQ(replay.extent().highest, 150u);
}

TEST_P(Reading, SaysWhichEventIsMissing) {
  EXPECT_EQ(append(120), "1-120");
  for (const uint64_t hole : {1u, 50u, 99u, 100u, 120u}) {
    SCOPED_TRACE(hole);
    const auto row = get(kEventsTable, layout().key_of(kCart, hole)).value();
    remove_row(hole);
    const auto forward = read();
    EXPECT_EQ(forward.back(), hole_at(hole));
    const auto backward = read_backward();
    EXPECT_EQ(backward.back(), hole_at(hole));
    EXPECT_EQ(read({.from = hole, .to = hole}), std::vector{hole_at(hole)});
    auto expected = numbers(1, 120);
    expected.erase(expected.begin() + static_cast<ptrdiff_t>(hole) - 1);
    EXPECT_EQ(read({.skip_holes = true}), expected);
    std::ranges::reverse(expected);
    EXPECT_EQ(read_backward({.skip_holes = true}), expected);
    EXPECT_EQ(extent().highest, 120u);
    put(kEventsTable, row);
  }
  EXPECT_EQ(read(), numbers(1, 120));
}

TEST_P(Reading, SaysThatAWholeBlockIsMissing) {
  EXPECT_EQ(append(320), "1-320");
  for (uint64_t number = 100; number < 300; ++number) remove_row(number);
  EXPECT_EQ(read(), with(numbers(1, 99), hole_at(100)));
  EXPECT_EQ(read_backward(), with(numbers(320, 300), hole_at(299)));
  EXPECT_EQ(read({.from = 150, .to = 250}), std::vector{hole_at(150)});
}

// --- deleting

TEST_P(Reading, ShowsNoneThatAreDeleted) {
  EXPECT_EQ(append(250), "1-250");
  EXPECT_EQ(remove_to(100), 100u);
  EXPECT_TRUE(has_row(1));
  EXPECT_TRUE(has_row(100));
  EXPECT_EQ(read(), numbers(101, 250));
  EXPECT_EQ(read_backward(), numbers(250, 101));
  EXPECT_EQ(read({.from = 50, .to = 101}), numbers(101, 101));
  EXPECT_EQ(read({.from = 50, .to = 100}), std::vector<std::string>());
  EXPECT_EQ(extent().lowest, 101u);
  EXPECT_EQ(remove_to(100), 100u);
  EXPECT_EQ(remove_to(50), 100u);
  EXPECT_EQ(remove_to(0), 100u);
  EXPECT_EQ(read(), numbers(101, 250));
}

TEST_P(Reading, RemovesTheRowsOfThoseThatArePermanentlyDeleted) {
  EXPECT_EQ(append(250), "1-250");
  EXPECT_EQ(remove_to(120, true), 120u);
  for (const uint64_t number : {1u, 99u, 100u, 120u}) EXPECT_FALSE(has_row(number));
  EXPECT_EQ(read(), numbers(121, 250));
  EXPECT_EQ(remove_to(200, false), 200u);
  EXPECT_TRUE(has_row(121));
  EXPECT_EQ(remove_to(150, true), 200u);
  EXPECT_FALSE(has_row(150));
  EXPECT_TRUE(has_row(151));
  EXPECT_EQ(remove_to(120, true), 200u);
  EXPECT_EQ(read(), numbers(201, 250));
  EXPECT_TRUE(run(journal().heads().unfinished_work())->empty());
}

TEST_P(Reading, KeepsTheHighestNumberWhenAllIsDeleted) {
  EXPECT_EQ(append(105), "1-105");
  EXPECT_EQ(remove_to(UINT64_MAX, true), 105u);
  EXPECT_EQ(extent().highest, 105u);
  EXPECT_EQ(extent().lowest, 106u);
  EXPECT_EQ(read(), std::vector<std::string>());
  EXPECT_EQ(append(1, Expected::none()), "version 105");
  EXPECT_EQ(append(2, Expected::version(105)), "106-107");
  EXPECT_EQ(read(), numbers(106, 107));
  EXPECT_EQ(remove_to(UINT64_MAX), 107u);
  EXPECT_EQ(append(1), "108-108");
}

TEST_P(Reading, HasNothingToDeleteWhereNothingIs) {
  EXPECT_EQ(remove_to(10), 0u);
  EXPECT_EQ(remove_to(10, true), 0u);
  EXPECT_EQ(append(1), "1-1");
  EXPECT_EQ(read(), numbers(1, 1));
}

TEST_P(Reading, DeletesWhileOthersAppend) {
  const auto other = process();
  std::jthread appender([&] {
    for (uint64_t i = 0; i < 20; ++i)
      EXPECT_EQ(append_to(other->journal, {.entity = kCart, .events = events(10, i * 10 + 1)}),
                fmt::format("{}-{}", i * 10 + 1, i * 10 + 10));
  });
  uint64_t deleted = 0;
  for (int i = 0; i < 20; ++i) {
    const auto highest = extent().highest;
    const auto to = run(journal().delete_to(kCart, highest / 2, i % 2 == 0)).value();
    EXPECT_GE(to, deleted);
    deleted = to;
    const auto found = read();
    if (!found.empty()) {
      EXPECT_EQ(found, numbers(deleted + 1, deleted + found.size()));
    }
  }
  appender.join();
  EXPECT_EQ(read(), numbers(deleted + 1, 200));
  EXPECT_EQ(remove_to(200, true), 200u);
  EXPECT_EQ(read(), std::vector<std::string>());
}

TEST_P(Reading, GoesOnWhereEventsAreDeletedMeanwhile) {
  EXPECT_EQ(append(350), "1-350");
  auto replay = journal().replay(kCart, {});
  auto some = run(replay.next()).value();
  EXPECT_EQ(some.front().number(), 1u);
  const auto last = some.back().number();
  EXPECT_EQ(remove_to(320, true), 320u);
  uint64_t next = 0;
  while (true) {
    some = run(replay.next()).value();
    if (some.empty()) break;
    if (next == 0) {
      EXPECT_GT(some.front().number(), last);
      next = some.front().number();
    }
    for (const auto& event : some) EXPECT_EQ(event.number(), next++);
  }
  EXPECT_EQ(next, 351u);
}

TEST_P(Reading, FinishesADeletionThatWasInterrupted) {
  EXPECT_EQ(append(2500), "1-2500");
  const auto dead = process();
  dead->store.decide(
      [](auto call) { return call.writes && call.number == 20 ? test::Fault::die : test::Fault::none; });
  EXPECT_FALSE(run(dead->journal.delete_to(kCart, 2400, true)));
  EXPECT_EQ(read(), numbers(2401, 2500));
  EXPECT_EQ(run(journal().heads().unfinished_work()).value(), std::vector{kCart});
  EXPECT_TRUE(has_row(2400));
  EXPECT_TRUE(run(journal().finish_work(kCart)).value());
  EXPECT_FALSE(has_row(2400));
  EXPECT_FALSE(has_row(1));
  EXPECT_TRUE(has_row(2401));
  EXPECT_TRUE(run(journal().heads().unfinished_work())->empty());
}

// --- confirmations

TEST_P(Reading, AddsConfirmationsToEvents) {
  EXPECT_EQ(append(3), "1-3");
  EXPECT_TRUE(run(journal().confirm(kCart, 2, {"b", "a"})).value());
  EXPECT_TRUE(run(journal().confirm(kCart, 2, {"b", "c"})).value());
  EXPECT_FALSE(run(journal().confirm(kCart, 4, {"a"})).value());
  EXPECT_FALSE(run(journal().confirm(kCart, 0, {"a"})).value());
  auto replay = journal().replay(kCart, {});
  const auto found = run(replay.next()).value();
  auto confirmations = found.at(1).confirmations();
  std::ranges::sort(confirmations);
  EXPECT_EQ(confirmations, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(found[0].confirmations().empty());
  EXPECT_EQ(remove_to(2), 2u);
  EXPECT_FALSE(run(journal().confirm(kCart, 2, {"d"})).value());
  EXPECT_FALSE(has_row(4));
}

// --- what expires

class Expiring : public Reading {
 protected:
  std::string append_for(size_t count, seconds time_to_live) {
    return append(
        {.entity = kCart, .events = events(count, extent().highest + 1), .time_to_live = time_to_live});
  }
  // As the table's time to live does, some time after.
  void remove_expired(uint64_t from, uint64_t to) {
    for (auto number = from; number <= to; ++number) remove_row(number);
  }
};
TABELLA_JOURNAL_CONTRACT(Expiring);

TEST_P(Expiring, EventsGoFromTheFront) {
  EXPECT_EQ(append_for(150, seconds(100)), "1-150");
  advance(seconds(50));
  EXPECT_EQ(append_for(10, seconds(100)), "151-160");
  EXPECT_EQ(read(), numbers(1, 160));
  advance(seconds(51));
  EXPECT_EQ(extent().lowest, 151u);
  EXPECT_EQ(read(), numbers(151, 160));
  EXPECT_EQ(read_backward(), numbers(160, 151));
  remove_expired(20, 140);  // in whatever order
  EXPECT_EQ(read(), numbers(151, 160));
  remove_expired(1, 150);
  EXPECT_EQ(read(), numbers(151, 160));
  advance(seconds(50));
  EXPECT_EQ(read(), std::vector<std::string>());
  EXPECT_EQ(extent().lowest, 161u);
  EXPECT_EQ(extent().highest, 160u);
  EXPECT_EQ(append(1, Expected::version(160)), "161-161");
  EXPECT_EQ(read(), numbers(161, 161));
}

TEST_P(Expiring, LaterEventsNeverGoEarlier) {
  EXPECT_EQ(append_for(2, seconds(1000)), "1-2");
  EXPECT_EQ(append_for(2, seconds(10)), "3-4");
  EXPECT_EQ(append_for(150, seconds(1)), "5-154");
  advance(seconds(20));
  EXPECT_EQ(read(), numbers(1, 154));
  EXPECT_EQ(append(1), "155-155");
  advance(seconds(1000));
  EXPECT_EQ(read(), numbers(155, 155));
}

TEST_P(Expiring, NoneGoBehindOneThatStays) {
  EXPECT_EQ(append(1), "1-1");
  EXPECT_NE(append_for(1, seconds(10)).find("stay for ever"), std::string::npos);
  EXPECT_EQ(remove_to(1), 1u);
  EXPECT_EQ(append_for(1, seconds(10)), "2-2");
  EXPECT_EQ(append(1), "3-3");
  EXPECT_NE(append_for(1, seconds(10)).find("stay for ever"), std::string::npos);
  advance(seconds(11));
  EXPECT_EQ(read(), numbers(3, 3));
}

TEST_P(Expiring, EventsHaveTheRetentionOfTheJournal) {
  auto with_retention = options();
  with_retention.retention = seconds(100);
  const auto keeping = process(with_retention);
  EXPECT_EQ(append_to(keeping->journal, {.entity = kCart, .events = events(2)}), "1-2");
  EXPECT_EQ(append_to(keeping->journal,
                      {.entity = kCart, .events = events(1, 3), .expected = Expected::version(2)}),
            "3-3");
  advance(seconds(101));
  EXPECT_EQ(read(), std::vector<std::string>());
  EXPECT_EQ(append(1), "4-4");
  // Behind one that stays others stay as well.
  EXPECT_EQ(append_to(keeping->journal, {.entity = kCart, .events = events(1, 5)}), "5-5");
  advance(seconds(101));
  EXPECT_EQ(read(), numbers(4, 5));
}

TEST_P(Expiring, TheStoreRemovesTheirRows) {
  EXPECT_EQ(append_for(3, seconds(5)), "1-3");
  EXPECT_EQ(append_for(1, seconds(5000)), "4-4");
  advance(seconds(10));
  if (!subject().advance(seconds(10))) GTEST_SKIP() << "its time cannot be moved";
  for (int i = 0; i < 2000 && (has_row(1) || has_row(2) || has_row(3)); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(has_row(1) || has_row(2) || has_row(3));
  EXPECT_TRUE(has_row(4));
  EXPECT_EQ(read(), numbers(4, 4));
}

TEST_P(Expiring, AMissingEventAmongThemIsAHoleAllTheSame) {
  EXPECT_EQ(append_for(10, seconds(1000)), "1-10");
  for (uint64_t hole = 2; hole <= 10; ++hole) {
    SCOPED_TRACE(hole);
    const auto row = get(kEventsTable, layout().key_of(kCart, hole)).value();
    remove_row(hole);
    EXPECT_EQ(read(), with(numbers(1, hole - 1), hole_at(hole)));
    put(kEventsTable, row);
  }
}

}  // namespace
}  // namespace tabella::journal

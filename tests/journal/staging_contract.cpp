// What several transactions can be interrupted in, and answers that get lost: every outcome is known, or said
// to be unknown.
#include <thread>

#include "journal/head_attributes.h"
#include "journal/journal_fixture.h"

namespace tabella::journal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;

class Staging : public JournalContract {
 protected:
  // Moves time while somebody waits.
  struct Passing {
    explicit Passing(ManualClock& clock)
        : thread([&clock](std::stop_token stop) {
            for (; !stop.stop_requested(); std::this_thread::sleep_for(milliseconds(5)))
              clock.advance(milliseconds(200));
          }) {}
    std::jthread thread;
  };

  // Of a process whose n-th write goes wrong.
  static test::FaultyStore::Decide at_write(int number, Fault fault) {
    return [number, fault](test::FaultyStore::Call call) {
      return call.writes && call.number == number ? fault : Fault::none;
    };
  }
  void leave_staged(int writes) {
    const auto dead = process();
    dead->store.decide(at_write(writes, Fault::die));
    EXPECT_FALSE(run(dead->journal.append({.entity = kCart, .events = events(350), .epoch = 1})));
    ASSERT_TRUE(head().staging);
    EXPECT_EQ(run(journal().heads().unfinished_work()).value(), std::vector{kCart});
  }
  void expect_only(uint64_t highest) {
    EXPECT_EQ(read(), numbers(1, highest));
    for (auto number = highest + 1; number < highest + 360; number += 10)
      EXPECT_FALSE(has_row(number)) << number;
    EXPECT_FALSE(head().staging);
    EXPECT_TRUE(run(journal().heads().unfinished_work())->empty());
  }
  // Neither an acknowledged append nor one that may have been made.
  static bool is_surely_not_made(const store::Result<AppendOutcome>& outcome) {
    return !outcome && !outcome.error().unsure;
  }
  uint64_t head_or_none() {
    const auto found = run(journal().heads().find(kCart)).value();
    return found ? found->highest : 0;
  }
  Append large(size_t first) { return {.entity = kCart, .events = events(350, first)}; }
};
TABELLA_JOURNAL_CONTRACT(Staging);

TEST_P(Staging, IsSeenByNobodyUntilItIsWhole) {
  EXPECT_EQ(append(3), "1-3");
  const auto slow = process();
  slow->store.decide([&](auto call) {
    if (!call.writes || call.number == 0) return Fault::none;
    EXPECT_EQ(extent().highest, 3u);
    EXPECT_EQ(read(), numbers(1, 3));
    EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 3u);
    EXPECT_FALSE(run(journal().confirm(kCart, 4, {"a"})).value());
    return Fault::none;
  });
  EXPECT_EQ(append_to(slow->journal, large(4)), "4-353");
  EXPECT_EQ(slow->store.writes(), 5);
  EXPECT_EQ(read(), numbers(1, 353));
}

TEST_P(Staging, ThatADeadProcessLeavesIsTakenOverByTheNextAppend) {
  EXPECT_EQ(append(3), "1-3");
  for (const int writes : {1, 2, 3, 4}) {
    SCOPED_TRACE(writes);
    leave_staged(writes);
    const auto highest = head().highest;
    const Passing time(clock());
    EXPECT_EQ(append({.entity = kCart, .events = events(1, highest + 1)}),
              fmt::format("{}-{}", highest + 1, highest + 1));
    expect_only(highest + 1);
  }
}

TEST_P(Staging, ThatADeadProcessLeavesIsFinishedBehindIt) {
  EXPECT_EQ(append(3), "1-3");
  leave_staged(3);
  EXPECT_FALSE(run(journal().finish_work(kCart)).value());
  advance(seconds(2));
  EXPECT_FALSE(run(journal().finish_work(kCart)).value());
  EXPECT_TRUE(has_row(4));
  EXPECT_EQ(read(), numbers(1, 3));
  advance(seconds(4));
  EXPECT_TRUE(run(journal().finish_work(kCart)).value());
  expect_only(3);
  EXPECT_TRUE(run(journal().finish_work(kCart)).value());
  EXPECT_EQ(append(1, Expected::version(3)), "4-4");
}

TEST_P(Staging, OfALivingProcessIsLeftAlone) {
  EXPECT_EQ(append(3), "1-3");
  const auto slow = process();
  slow->store.decide([&](auto call) {
    if (call.writes && call.number > 0) {
      advance(seconds(4));
      EXPECT_FALSE(run(journal().finish_work(kCart)).value());
    }
    return Fault::none;
  });
  EXPECT_EQ(append_to(slow->journal, large(4)), "4-353");
  EXPECT_EQ(read(), numbers(1, 353));
}

TEST_P(Staging, IsWaitedForByOtherAppends) {
  EXPECT_EQ(append(3), "1-3");
  const auto slow = process();
  std::string other;
  std::jthread waiting;
  slow->store.decide([&](auto call) {
    if (call.writes && call.number == 2)
      waiting = std::jthread([&] { other = append({.entity = kCart, .events = events(1, 354)}); });
    return Fault::none;
  });
  EXPECT_EQ(append_to(slow->journal, large(4)), "4-353");
  waiting.join();
  EXPECT_EQ(other, "354-354");
  EXPECT_EQ(read(), numbers(1, 354));
}

TEST_P(Staging, OfAZombieThatComesBackWritesNothing) {
  EXPECT_EQ(append(3), "1-3");
  for (const int writes : {1, 2, 4}) {
    SCOPED_TRACE(writes);
    const auto highest = head().highest;
    const auto zombie = process();
    zombie->store.decide([&](auto call) {
      if (!call.writes || call.number != writes) return Fault::none;
      // It sleeps here, and others go on.
      EXPECT_FALSE(run(journal().finish_work(kCart)).value());
      advance(seconds(6));
      EXPECT_TRUE(run(journal().finish_work(kCart)).value());
      EXPECT_EQ(append({.entity = kCart, .events = events(2, highest + 1)}),
                fmt::format("{}-{}", highest + 1, highest + 2));
      return Fault::none;
    });
    EXPECT_EQ(append_to(zombie->journal, {.entity = kCart,
                                          .events = events(350, highest + 1),
                                          .expected = Expected::version(highest)}),
              fmt::format("version {}", highest + 2));
    expect_only(highest + 2);
  }
}

TEST_P(Staging, OfAZombieThatExpectsNothingIsMadeAnewBehindTheOthers) {
  const auto zombie = process();
  zombie->store.decide([&](auto call) {
    if (!call.writes || call.number != 2) return Fault::none;
    EXPECT_FALSE(run(journal().finish_work(kCart)).value());
    advance(seconds(6));
    EXPECT_TRUE(run(journal().finish_work(kCart)).value());
    EXPECT_EQ(append(2), "1-2");
    return Fault::none;
  });
  EXPECT_EQ(append_to(zombie->journal, large(3)), "3-352");
  expect_only(352);
}

TEST_P(Staging, IsFencedOffByAHigherEpoch) {
  EXPECT_EQ(append(3), "1-3");
  for (const int writes : {1, 2, 4}) {
    SCOPED_TRACE(writes);
    const auto old_epoch = run(journal().take_epoch(kCart)).value();
    const auto highest = head().highest;
    const auto old_writer = process();
    old_writer->store.decide([&](auto call) {
      if (!call.writes || call.number != writes) return Fault::none;
      EXPECT_EQ(append({.entity = kCart,
                        .events = events(1, highest + 1),
                        .expected = Expected::version(highest),
                        .epoch = old_epoch + 1}),
                fmt::format("{}-{}", highest + 1, highest + 1));
      return Fault::none;
    });
    EXPECT_EQ(append_to(old_writer->journal,
                        {.entity = kCart, .events = events(350, highest + 1), .epoch = old_epoch}),
              fmt::format("epoch {}", old_epoch + 1));
    expect_only(highest + 1);
  }
}

TEST_P(Staging, IsFencedOffByAnEpochThatIsTakenMeanwhile) {
  EXPECT_EQ(append(3), "1-3");
  const auto old_writer = process();
  old_writer->store.decide([&](auto call) {
    if (call.writes && call.number == 3) {
      EXPECT_EQ(run(journal().take_epoch(kCart)).value(), 6u);
    }
    return Fault::none;
  });
  EXPECT_EQ(append_to(old_writer->journal, {.entity = kCart, .events = events(350, 4), .epoch = 5}),
            "epoch 6");
  expect_only(3);
}

// --- lost answers

TEST_P(Staging, AnAppendWhoseAnswerIsLostIsMadeOnce) {
  const auto unlucky = process();
  uint64_t first = 1;
  for (const auto fault : {Fault::lose_answer, Fault::lose_request, Fault::conflict}) {
    for (const auto expected : {true, false}) {
      for (const size_t size : {3u, 350u}) {
        for (int number = 0; number < (size == 3 ? 1 : 5); ++number) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", static_cast<int>(fault), expected, size, number));
          unlucky->store.decide(at_write(number, fault));
          Append append{.entity = kCart, .events = events(size, first)};
          if (expected) append.expected = Expected::version(first - 1);
          EXPECT_EQ(append_to(unlucky->journal, append), fmt::format("{}-{}", first, first + size - 1));
          first += size;
          EXPECT_FALSE(head().staging);
        }
      }
    }
  }
  EXPECT_EQ(read(), numbers(1, first - 1));
  EXPECT_TRUE(run(journal().heads().unfinished_work())->empty());
}

TEST_P(Staging, AnAppendThatIsMadeLateIsMadeOnce) {
  const auto unlucky = process();
  uint64_t first = 1;
  // It comes in when this process reads for the n-th time after it was lost.
  for (const auto expected : {true, false}) {
    for (const size_t size : {3u, 350u}) {
      for (int write = 0; write < (size == 3 ? 1 : 5); ++write) {
        for (int reads = 0; reads < 4; ++reads) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", expected, size, write, reads));
          int after = -1;
          unlucky->store.decide([&](auto call) {
            if (call.writes && call.number == write) {
              after = 0;
              return Fault::delay;
            }
            if (!call.writes && after >= 0 && after++ == reads) unlucky->store.deliver_late();
            return Fault::none;
          });
          Append append{.entity = kCart, .events = events(size, first)};
          if (expected) append.expected = Expected::version(first - 1);
          const Passing time(clock());
          EXPECT_EQ(append_to(unlucky->journal, append), fmt::format("{}-{}", first, first + size - 1));
          unlucky->store.decide({});
          unlucky->store.deliver_late();
          first = head().highest + 1;
          EXPECT_FALSE(head().staging);
          ASSERT_EQ(read(), numbers(1, first - 1));
        }
      }
    }
  }
}

TEST_P(Staging, AnAppendIsNeverSaidNotToBeMadeThatMayBe) {
  auto hasty = options();
  hasty.operation_timeout = milliseconds(1);
  for (const size_t size : {3u, 350u}) {
    for (int write = 0; write < (size == 3 ? 1 : 5); ++write) {
      for (const bool reads : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} {}", size, write, reads));
        const auto unlucky = process(hasty);
        bool lost = false;
        unlucky->store.decide([&](auto call) {
          if (call.writes && call.number == write) {
            lost = true;
            return Fault::lose_answer;
          }
          // And nobody can tell afterwards.
          return lost && (reads || call.writes) ? Fault::refuse : Fault::none;
        });
        const auto before = head_or_none();
        const auto outcome =
            run(unlucky->journal.append({.entity = kCart, .events = events(size, before + 1)}));
        const bool made = head_or_none() != before;
        if (made) {
          EXPECT_FALSE(is_surely_not_made(outcome)) << outcome_of(outcome);
        } else {
          EXPECT_FALSE(outcome);
        }
        const Passing time(clock());
        const auto highest = head_or_none();
        EXPECT_EQ(append({.entity = kCart, .events = events(1, highest + 1)}),
                  fmt::format("{}-{}", highest + 1, highest + 1));
        EXPECT_EQ(read(), numbers(1, highest + 1));
      }
    }
  }
}

TEST_P(Staging, ADelayedAppendIsNeverSaidNotToBeMade) {
  auto hasty = options();
  hasty.operation_timeout = milliseconds(1);
  for (const size_t size : {3u, 350u}) {
    const auto unlucky = process(hasty);
    unlucky->store.decide([&](auto call) {
      return call.writes && call.number == (size == 3 ? 0 : 4) ? Fault::delay : Fault::none;
    });
    const auto before = head_or_none();
    const auto outcome = run(unlucky->journal.append({.entity = kCart, .events = events(size, before + 1)}));
    unlucky->store.decide({});
    unlucky->store.deliver_late();
    if (head_or_none() != before) {
      EXPECT_FALSE(is_surely_not_made(outcome)) << outcome_of(outcome);
    }
    EXPECT_EQ(read(), numbers(1, head_or_none()));
  }
}

TEST_P(Staging, ABatchWhoseAnswerIsLostIsAnsweredWhenItComesAgain) {
  uint64_t first = 1;
  for (const size_t size : {3u, 350u}) {
    const auto unlucky = process();
    bool lost = false;
    unlucky->store.decide([&](auto call) {
      if (lost) return Fault::refuse;
      if (!call.writes || call.number != (size == 3 ? 0 : 4)) return Fault::none;
      lost = true;
      return Fault::lose_answer;
    });
    const Append batch{.entity = kCart,
                       .events = events(size, first),
                       .expected = Expected::version(first - 1),
                       .batch_id = std::to_string(size)};
    const auto outcome = run(unlucky->journal.append(batch));
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().unsure);
    EXPECT_EQ(append(batch), fmt::format("{}-{} again", first, first + size - 1));
    first += size;
  }
}

TEST_P(Staging, DeletionsWhoseAnswersAreLostAreMade) {
  EXPECT_EQ(append(150), "1-150");
  const auto unlucky = process();
  uint64_t to = 0;
  for (const auto fault : {Fault::lose_answer, Fault::lose_request, Fault::conflict}) {
    for (const bool permanently : {true, false}) {
      to += 10;
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(fault), permanently));
      unlucky->store.decide(at_write(0, fault));
      EXPECT_EQ(run(unlucky->journal.delete_to(kCart, to, permanently)).value_or(0), to);
      EXPECT_EQ(read(), numbers(to + 1, 150));
      if (permanently) {
        EXPECT_FALSE(has_row(to));
      }
    }
  }
}

}  // namespace
}  // namespace tabella::journal

// A table that is shared with programs that have Akka's or Pekko's plugin: they know nothing of heads, and
// write, delete and die in their own way.
#include <thread>

#include "journal/journal_fixture.h"

namespace tabella::journal {
namespace {

using test::Fault;

class Sharing : public JournalContract {
 protected:
  void put_all(uint64_t from, uint64_t to) {
    for (auto number = from; number <= to; ++number) put_foreign(number);
  }
  std::optional<uint64_t> counter(const std::string& what, int shard) {
    const auto name = fmt::format("{}-{}-{}-{}", kCart.journal, what, kCart.pid, shard);
    const bool blocks = kind() == Kind::blocks;
    store::Row key;
    if (blocks)
      key.set("par", name).set("num", 0);
    else
      key.set("key", name);
    const auto row = get(kEventsTable, key);
    if (!row) return std::nullopt;
    return static_cast<uint64_t>(store::number_of(*row, blocks ? "seq" : "sequenceNr"));
  }
  // The highest number as Pekko finds it: the highest of all shards, then the block that it names.
  uint64_t highest_for_pekko() {
    uint64_t start = 0;
    uint64_t lowest = 0;
    for (int shard = 0; shard < 10; ++shard) {
      start = std::max(start, counter("SH", shard).value_or(0));
      lowest = std::max(lowest, counter("SL", shard).value_or(0));
    }
    uint64_t highest = 0;
    for (auto number = std::max<uint64_t>(start, 1); number < start + 100; ++number)
      if (has_row(number)) highest = number;
    return highest > 0 ? highest : std::max(start, lowest > 0 ? lowest - 1 : 0);
  }
};
TABELLA_JOURNAL_CONTRACT(Sharing);

class SharingBatches : public Sharing {
 protected:
  void SetUp() override {
    if (kind() == Kind::keys) GTEST_SKIP() << "programs with this layout write no batches";
  }
};
TABELLA_JOURNAL_CONTRACT(SharingBatches);

TEST_P(Sharing, TheirEventsAreSeen) {
  put_all(1, 5);
  EXPECT_EQ(extent().highest, 5u);
  EXPECT_EQ(read(), numbers(1, 5));
  EXPECT_EQ(read_backward({.from = 2}), numbers(5, 2));
  EXPECT_FALSE(run(journal().heads().find(kCart)).value());
  put_all(6, 230);
  EXPECT_EQ(extent().highest, 230u);
  EXPECT_EQ(read(), numbers(1, 230));
}

TEST_P(Sharing, HeadsAreMovedOverTheirEvents) {
  EXPECT_FALSE(run(journal().adopt(kCart)).value());
  put_all(1, 105);
  EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 105u);
  EXPECT_EQ(head().highest, 105u);
  put_all(106, 107);
  EXPECT_EQ(head().highest, 105u);
  EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 107u);
  EXPECT_EQ(head().highest, 107u);
  EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 107u);
}

TEST_P(Sharing, AppendsGoBehindTheirEvents) {
  put_all(1, 3);
  EXPECT_EQ(append(2), "4-5");
  put_all(6, 8);
  EXPECT_EQ(append(1, Expected::version(8)), "9-9");
  put_all(10, 10);
  EXPECT_EQ(append({.entity = kCart, .events = events(150, 11)}), "11-160");
  put_all(161, 161);
  EXPECT_EQ(read(), numbers(1, 161));
}

TEST_P(Sharing, TheirEventsConflict) {
  put_all(1, 3);
  EXPECT_EQ(append(1, Expected::none()), "version 3");
  EXPECT_EQ(append(1, Expected::version(2)), "version 3");
  EXPECT_EQ(append(1, Expected::version(3)), "4-4");
  put_all(5, 5);
  EXPECT_EQ(append(1, Expected::version(4)), "version 5");
  EXPECT_EQ(append(120, Expected::version(4)), "version 5");
  put_all(6, 6);
  EXPECT_EQ(append(1, Expected::none()), "version 6");
  EXPECT_EQ(append(1, Expected::version(2)), "version 6");
  EXPECT_EQ(run(journal().take_epoch(kCart)).value(), 1u);
  EXPECT_EQ(read(), numbers(1, 6));
}

TEST_P(Sharing, HeadsThatAreMovedStayAsFarDeletedAsTheyAre) {
  EXPECT_EQ(append(3), "1-3");
  put_all(4, 6);
  const auto other = process();
  other->store.decide([&](auto call) {
    if (call.writes && call.number == 0) {
      EXPECT_EQ(run(journal().delete_to(kCart, 2, false)).value(), 2u);
    }
    return Fault::none;
  });
  EXPECT_EQ(run(other->journal.adopt(kCart)).value()->highest, 6u);
  EXPECT_EQ(read(), numbers(3, 6));
  put_all(7, 7);
  EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 7u);
  EXPECT_TRUE(run(journal().finish_work(kCart)).value());
  EXPECT_EQ(run(journal().delete_to(kCart, 3, true)).value(), 3u);
  EXPECT_EQ(read(), numbers(4, 7));
}

TEST_P(Sharing, AnEventOfTheirsInTheMiddleOfAStagingIsKept) {
  EXPECT_EQ(append(1), "1-1");
  const auto other = process();
  other->store.decide([&](auto call) {
    if (call.writes && call.number == 2) put_foreign(140);
    return Fault::none;
  });
  auto batch = events(200, 2);
  const auto answer = append_to(other->journal, {.entity = kCart, .events = batch});
  // It stands in the way, with nothing in front of it: the append begins anew behind it.
  EXPECT_EQ(answer, "141-340");
  EXPECT_EQ(store::text_of(*get(kEventsTable, layout().key_of(kCart, 140)),
                           kind() == Kind::blocks ? "writer_uuid" : "deleted"),
            kind() == Kind::blocks ? kForeignWriter : "false");
  for (const uint64_t number : {2u, 50u, 139u}) EXPECT_FALSE(has_row(number));
  EXPECT_EQ(read({.from = 140, .to = 141}).size(), 2u);
  EXPECT_FALSE(head().staging);
}

TEST_P(Sharing, TheirDeletionsAreSeen) {
  put_all(1, 120);
  put_foreign_low(111);
  for (uint64_t number = 1; number <= 110; ++number) remove_row(number);
  EXPECT_EQ(extent().highest, 120u);
  EXPECT_EQ(extent().lowest, 111u);
  EXPECT_EQ(read(), numbers(111, 120));
  EXPECT_EQ(read_backward(), numbers(120, 111));
  EXPECT_EQ(append(1), "121-121");
  EXPECT_EQ(head().deleted_to, 110u);
  EXPECT_EQ(read(), numbers(111, 121));
}

TEST_P(Sharing, TheirDeletionsOfWhatIsKnownAlreadyAreSeen) {
  EXPECT_EQ(append(120), "1-120");
  put_foreign_low(111);
  for (uint64_t number = 1; number <= 110; ++number) remove_row(number);
  EXPECT_EQ(read(), numbers(111, 120));
  EXPECT_EQ(read_backward(), numbers(120, 111));
  EXPECT_EQ(read({.from = 50, .to = 112}), numbers(111, 112));
  EXPECT_EQ(append(1), "121-121");
  EXPECT_EQ(read(), numbers(111, 121));
}

TEST_P(Sharing, TheirHighestSurvivesTheirDeletionOfAll) {
  put_all(1, 120);
  put_foreign_low(121);
  for (uint64_t number = 1; number <= 120; ++number) remove_row(number);
  EXPECT_EQ(extent().highest, 120u);
  EXPECT_EQ(read(), std::vector<std::string>());
  EXPECT_EQ(append(1, Expected::none()), "version 120");
  EXPECT_EQ(append(1), "121-121");
  EXPECT_EQ(read(), numbers(121, 121));
}

TEST_P(Sharing, TheyFindTheHighestNumberOfOurs) {
  if (kind() == Kind::keys) {
    EXPECT_EQ(append(5), "1-5");
    EXPECT_EQ(counter("SH", 5), 5u);
    EXPECT_EQ(append(250), "6-255");
    EXPECT_EQ(counter("SH", 5), 255u);
    return;
  }
  for (const size_t count : {1u, 97u, 1u, 1u, 1u, 98u, 2u, 350u, 3u}) {
    SCOPED_TRACE(count);
    append(count);
    EXPECT_EQ(highest_for_pekko(), extent().highest);
  }
  EXPECT_EQ(counter("SH", 0), std::nullopt);
  EXPECT_EQ(counter("SH", 1), 100u);
  EXPECT_EQ(counter("SH", 2), 200u);
  EXPECT_EQ(counter("SH", 5), 500u);
  EXPECT_EQ(run(journal().delete_to(kCart, UINT64_MAX, true)).value(), 554u);
  EXPECT_EQ(counter("SL", 5), 555u);
  EXPECT_EQ(highest_for_pekko(), 554u);
}

TEST_P(Sharing, ANumberThatTheyUsedUpIsAHole) {
  put_all(1, 6);
  put_all(8, 9);
  EXPECT_EQ(extent().highest, 9u);
  EXPECT_EQ(read().back(), "event 7 of cart|1 is missing, and was not deleted: its history has a hole");
  EXPECT_EQ(read({.skip_holes = true}), (std::vector<std::string>{"1", "2", "3", "4", "5", "6", "8", "9"}));
  EXPECT_EQ(append(1), "10-10");
}

TEST_P(Sharing, EventsThatTheyMarkedAsDeletedAreNotShown) {
  if (kind() == Kind::blocks) GTEST_SKIP() << "programs with this layout have no such mark";
  put_all(1, 4);
  for (const uint64_t number : {1u, 2u})
    ASSERT_TRUE(run(store().update_item(
        store::Update(kEventsTable, layout().key_of(kCart, number)).set("deleted", "true"))));
  EXPECT_EQ(read(), numbers(3, 4));
  EXPECT_EQ(read_backward(), numbers(4, 3));
}

// --- their batches, which they write row by row

TEST_P(SharingBatches, AreShownWhereTheyAreWhole) {
  put_all(1, 2);
  put_foreign_batch(3, 5);
  put_foreign_batch(8, 250);
  EXPECT_EQ(extent().highest, 257u);
  EXPECT_EQ(read(), numbers(1, 257));
  EXPECT_EQ(read_backward(), numbers(257, 1));
  for (const uint64_t from : {3u, 4u, 7u, 8u, 9u, 100u, 257u})
    for (const uint64_t to : {3u, 6u, 7u, 8u, 100u, 256u, 257u}) {
      SCOPED_TRACE(fmt::format("{}-{}", from, to));
      EXPECT_EQ(read({.from = from, .to = to}), from <= to ? numbers(from, to) : std::vector<std::string>());
      EXPECT_EQ(read_backward({.from = from, .to = to}),
                from <= to ? numbers(to, from) : std::vector<std::string>());
    }
}

TEST_P(SharingBatches, AreLeftOutWhereTheyAreNotWhole) {
  put_all(1, 2);
  put_foreign_batch(3, 4, {4, 5});
  put_all(7, 7);
  const std::vector<std::string> expected = {"1", "2", "7"};
  EXPECT_EQ(read(), expected);
  EXPECT_EQ(read_backward(), (std::vector<std::string>{"7", "2", "1"}));
  EXPECT_EQ(read({.from = 3, .to = 6}), std::vector<std::string>());
  EXPECT_EQ(read({.from = 4, .to = 7}), numbers(7, 7));
  EXPECT_EQ(read({.from = 6}), numbers(7, 7));
  EXPECT_EQ(read_backward({.from = 1, .to = 5}), numbers(2, 1));
  EXPECT_EQ(read_backward({.from = 4, .to = 6}), std::vector<std::string>());
  EXPECT_EQ(append(1), "8-8");
}

TEST_P(SharingBatches, AreLeftOutWhereTheirFirstOrLastIsMissing) {
  put_foreign_batch(1, 3, {1});
  put_foreign_batch(4, 3, {6});
  put_all(7, 8);
  EXPECT_EQ(extent().highest, 8u);
  EXPECT_EQ(read(), numbers(7, 8));
  EXPECT_EQ(read_backward(), numbers(8, 7));
  EXPECT_EQ(read({.from = 2, .to = 7}), numbers(7, 7));
}

TEST_P(SharingBatches, AreLeftOutWhereTheyGoOnInsideOfThem) {
  // They go on behind the last row that is there, wherever the batch would have ended.
  put_all(1, 1);
  put_foreign_batch(2, 5, {5, 6});
  put_all(5, 5);
  EXPECT_EQ(extent().highest, 5u);
  EXPECT_EQ(read(), (std::vector<std::string>{"1", "5"}));
  EXPECT_EQ(read_backward(), (std::vector<std::string>{"5", "1"}));
  put_foreign_batch(6, 2);
  EXPECT_EQ(read(), (std::vector<std::string>{"1", "5", "6", "7"}));
  EXPECT_EQ(read_backward(), (std::vector<std::string>{"7", "6", "5", "1"}));
  EXPECT_EQ(append(1), "8-8");
}

TEST_P(SharingBatches, AtTheEndAreNotSeenUntilTheyAreWhole) {
  put_all(1, 2);
  put_foreign_batch(3, 4, {6});
  EXPECT_EQ(extent().highest, 2u);
  EXPECT_EQ(read(), numbers(1, 2));
  EXPECT_EQ(run(journal().adopt(kCart)).value()->highest, 2u);
  put_foreign(6, Event::BatchPlace{.index = 3, .last = 3});
  EXPECT_EQ(extent().highest, 6u);
  EXPECT_EQ(read(), numbers(1, 6));
}

TEST_P(SharingBatches, AtTheEndThatNobodyFinishesAreGoneBehind) {
  put_all(1, 2);
  put_foreign_batch(3, 4, {5, 6});
  std::jthread time([&](std::stop_token stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(20)))
      advance(std::chrono::seconds(1));
  });
  EXPECT_EQ(append({.entity = kCart, .events = events(1, 5)}), "5-5");
  EXPECT_EQ(read(), (std::vector<std::string>{"1", "2", "5"}));
  EXPECT_EQ(append({.entity = kCart, .events = events(2, 6)}), "6-7");
  EXPECT_EQ(read(), (std::vector<std::string>{"1", "2", "5", "6", "7"}));
  EXPECT_EQ(read_backward(), (std::vector<std::string>{"7", "6", "5", "2", "1"}));
}

TEST_P(SharingBatches, OfWhichSomeAreDeletedAreShownFromThere) {
  put_foreign_batch(1, 6);
  EXPECT_EQ(run(journal().delete_to(kCart, 3, true)).value(), 3u);
  EXPECT_EQ(read(), numbers(4, 6));
  EXPECT_EQ(read_backward(), numbers(6, 4));
  EXPECT_EQ(read({.from = 5}), numbers(5, 6));
  EXPECT_EQ(read_backward({.to = 5}), numbers(5, 4));
}

}  // namespace
}  // namespace tabella::journal

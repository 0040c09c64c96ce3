// The order of all events: that each gets one position whatever happens meanwhile, and how it is read.
#include <algorithm>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "journal/continuity.h"
#include "journal/event_attributes.h"
#include "journal/foreign_rows.h"
#include "journal/order_fixture.h"

namespace tabella::journal {
namespace {

using Fate = UnreliableStore::Fate;
using test::run;
using Runs = std::vector<Run>;  // Run is something else in a test

TEST(OrderRows, RunsThatContinueEachOtherBecomeOne) {
  RunEncoder encoder(Positions::dense);
  encoder.add({.position = 11, .pid = "a", .number = 1, .count = 2});
  encoder.add({.position = 13, .pid = "a", .number = 3});
  encoder.add({.position = 14, .pid = "b", .number = 7, .count = 300});
  encoder.add({.position = 314, .pid = "a", .number = 4});
  EXPECT_EQ(encoder.first(), 11u);
  const auto bytes = std::move(encoder).finish();
  EXPECT_EQ(bytes, std::string("\x01\0\x01"
                               "a\x01\x03\0\x01"
                               "b\x07\xac\x02\x01\x04\x01",
                               15));
  EXPECT_EQ(decode_runs(bytes, Positions::dense, 11).value(),
            (Runs{{.position = 11, .pid = "a", .number = 1, .count = 3},
                  {.position = 14, .pid = "b", .number = 7, .count = 300},
                  {.position = 314, .pid = "a", .number = 4, .count = 1}}));
}

TEST(OrderRows, RunsOfATagKeepTheirGaps) {
  const Runs runs{{.position = 5, .pid = "a", .number = 1, .count = 2},
                  {.position = 9, .pid = "a", .number = 3, .count = 1},
                  {.position = INT64_MAX - 9, .pid = "b", .number = INT64_MAX, .count = 1}};
  RunEncoder encoder(Positions::sparse);
  for (const auto& one : runs) encoder.add(one);
  EXPECT_EQ(decode_runs(std::move(encoder).finish(), Positions::sparse, 5).value(), runs);
}

TEST(OrderRows, DamagedBytesAreAnErrorOrOtherRunsAndNeverMore) {
  RunEncoder encoder(Positions::sparse);
  for (uint64_t i = 1; i < 50; ++i)
    encoder.add({.position = i * 3,
                 .pid = "entity-" + std::to_string(i % 7),
                 .number = i * 1000,
                 .count = i % 3 + 1});
  const auto bytes = std::move(encoder).finish();
  std::mt19937 random(7);
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = bytes.substr(0, random() % (bytes.size() + 1));
    for (int changes = static_cast<int>(random() % 4); changes > 0 && !damaged.empty(); --changes)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto positions = random() % 2 == 0 ? Positions::dense : Positions::sparse;
    const auto runs = decode_runs(damaged, positions, random() % 2 == 0 ? 3 : INT64_MAX - 5);
    if (!runs) ++refused;
    for (const auto& one : runs.value_or(Runs())) {
      EXPECT_FALSE(one.pid.empty());
      EXPECT_TRUE(one.number > 0 && one.count > 0 && one.last_number() <= INT64_MAX);
      EXPECT_LE(one.last_position(), static_cast<uint64_t>(INT64_MAX));
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_FALSE(decode_runs("", Positions::dense, 1));
  EXPECT_FALSE(decode_runs("\x01", Positions::dense, 1));
  EXPECT_FALSE(decode_runs(std::string("\x02\0\x01"
                                       "a\x01\x01",
                                       6),
                           Positions::dense, 1));
  // Into the next block.
  const std::string two(
      "\x01\0\x01"
      "a\x01\x02",
      6);
  EXPECT_TRUE(decode_runs(two, Positions::dense, 9'999));
  EXPECT_FALSE(decode_runs(two, Positions::dense, 10'000));
  EXPECT_TRUE(decode_runs(two, Positions::dense, 10'001));
}

TEST(OrderState, SequenceNumbersAreComparedAsNumbers) {
  EXPECT_LT(compare_sequences("9", "10"), 0);
  EXPECT_GT(compare_sequences("100000000000000000000000000000000000010", "99"), 0);
  EXPECT_EQ(compare_sequences("000000000000000000012", "12"), 0);
  EXPECT_EQ(compare_sequences("0", "000"), 0);
  EXPECT_LT(compare_sequences("000", "1"), 0);
}

// Rows of a batch that another program has written, one after the other.
class ForeignBatch : public testing::TestWithParam<Direction> {
 protected:
  static Event row(uint64_t number, uint64_t index, uint64_t last, size_t bytes) {
    const EventAttributes names{.payload = "event", .message = "pay"};
    return {store::Row()
                .set("event", store::Binary{std::string(bytes, 'x')})
                .set(std::string(event_attributes::kBatchIndex), index)
                .set(std::string(event_attributes::kBatchLast), last),
            number, names};
  }
  // How many are shown once each of them was taken, without the places that are missing.
  std::vector<size_t> take_all(uint64_t count, size_t bytes, const std::set<uint64_t>& missing = {}) {
    const bool forward = GetParam() == Direction::forward;
    Continuity continuity(forward ? 1 : count, 1, GetParam(), Holes::refuse);
    std::vector<Event> shown;
    std::vector<size_t> sizes;
    for (uint64_t i = 0; i < count; ++i) {
      const auto index = forward ? i : count - 1 - i;
      if (missing.contains(index)) continue;
      auto event = row(index + 1, index, count - 1, bytes);
      if (!continuity.take(event, shown)) break;
      sizes.push_back(shown.size());
    }
    return sizes;
  }
};

INSTANTIATE_TEST_SUITE_P(Read, ForeignBatch, testing::Values(Direction::forward, Direction::backward),
                         [](const auto& info) {
                           return info.param == Direction::forward ? "Forward" : "Backward";
                         });

TEST_P(ForeignBatch, IsHeldBackUntilItIsWhole) {
  EXPECT_EQ(take_all(3, 10), (std::vector<size_t>{0, 0, 3}));
  EXPECT_EQ(take_all(4, 10, {1, 2}), (std::vector<size_t>{0, 0}));
}

TEST_P(ForeignBatch, IsShownAsItComesWhereItIsTooLargeToBeHeldBack) {
  const auto shown = take_all(16, 8'000'000);
  ASSERT_EQ(shown.size(), 16u);
  EXPECT_EQ(shown[1], 0u);
  for (size_t i = 8; i < 16; ++i) EXPECT_EQ(shown[i], i + 1);
  // What is missing behind that is a hole; before it the batch is known not to be whole.
  const std::set<uint64_t> late{GetParam() == Direction::forward ? 12u : 3u};
  EXPECT_EQ(take_all(16, 8'000'000, late).size(), 12u);
  const std::set<uint64_t> early{GetParam() == Direction::forward ? 2u : 13u};
  EXPECT_EQ(take_all(16, 8'000'000, early), std::vector<size_t>(15, 0));
}

TEST_P(ForeignBatch, IsNotBelievedToHaveAnyNumberOfRows) {
  EXPECT_EQ(take_all(3'000, 1).back(), 3'000u);
  EXPECT_EQ(take_all(50'000, 1).front(), 1u);
}

class JournalOrder : public testing::TestWithParam<const char*>, protected OrderFixture {
 protected:
  JournalOrder() : OrderFixture(std::string_view(GetParam()) == "blocks") {}

  // Several entities whose events are among each other.
  void append_some(int rounds = 20) {
    for (int i = 0; i < rounds; ++i)
      append(fmt::format("cart|{}", i % 5), static_cast<uint64_t>(i % 7 + 1),
             i % 3 == 0 ? TagsOf(even_ones) : TagsOf());
  }
  std::string open_shard() {
    const auto streams = run(engine_.list_streams({.table = "heads", .start = {}})).value().streams;
    return run(engine_.describe_stream({.arn = streams.back().arn})).value().shards.back().id;
  }
  void remove_row(const std::string& pid, uint64_t number) {
    const auto key = layout_->key_of({.journal = "shop", .pid = pid}, number);
    ASSERT_TRUE(run(engine_.delete_item(store::Delete("events", key))));
  }
  static std::vector<std::string> even_ones(uint64_t number) {
    return number % 2 == 0 ? std::vector<std::string>{"even"} : std::vector<std::string>();
  }
};

INSTANTIATE_TEST_SUITE_P(On, JournalOrder, testing::Values("blocks", "keys"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(JournalOrder, EveryEventHasOnePositionAndThoseOfAnEntityAreInOrder) {
  append_some();
  append("once", 1);
  place(records());
  expect_each_once();
  const auto all = read(1000);
  EXPECT_EQ(all.size(), run(order_.last("shop")).value());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].starts_with(std::to_string(i + 1) + " "));
  EXPECT_EQ(read(1), all);
  EXPECT_EQ(read(7), all);
  auto reversed = all;
  std::ranges::reverse(reversed);
  EXPECT_EQ(read_backward(1000), reversed);
  EXPECT_EQ(read_backward(7), reversed);
  EXPECT_EQ(run(journal_.heads().journals()).value(), std::vector<std::string>{"shop"});
}

TEST_P(JournalOrder, WhatIsNotThereIsEmpty) {
  const auto page = run(order_.read("shop", 0, 10, {})).value();
  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.position, 0u);
  EXPECT_EQ(page.last, 0u);
  EXPECT_TRUE(run(order_.read_backward("shop", UINT64_MAX, 10, {})).value().events.empty());
  append("a", 3);
  place(records());
  EXPECT_TRUE(run(order_.read("other", 0, 10, {})).value().events.empty());
  EXPECT_EQ(run(order_.read("shop", 99, 10, {})).value().position, 99u);
  EXPECT_TRUE(run(order_.read_backward("shop", 1, 10, {})).value().events.empty());
  EXPECT_TRUE(run(order_.read("shop", 0, 10, {.tag = "none"})).value().events.empty());
}

TEST_P(JournalOrder, RecordsThatComeAgainGetNoSecondPosition) {
  append_some(6);
  const auto some = records();
  place(some);
  place(some);
  append_some(6);
  const auto all = records();
  place(all);
  expect_each_once();
  const auto placements = placement(engine_);
  for (size_t first = 0; first < all.size(); ++first)
    EXPECT_TRUE(handle(*placements, std::span(all).subspan(first)));
  expect_each_once();
}

TEST_P(JournalOrder, JournalsHaveOrdersOfTheirOwn) {
  append("a", 2);
  const Entity other{.journal = "bank", .pid = "a"};
  ASSERT_TRUE(run(
      engine_.update_item(store::Update("heads", Heads::key_of(other)).set(head_attributes::kHighest, 5))));
  append("a", 2);
  place(records());
  expect_each_once();
  EXPECT_EQ(run(order_.last("bank")).value(), 5u);
  EXPECT_EQ(run(journal_.heads().journals()).value(), (std::vector<std::string>{"bank", "shop"}));
}

TEST_P(JournalOrder, WhatWasDeletedBeforeItsHeadWasMadeHasNoPositions) {
  const auto adopt = [&](const std::string& pid, uint64_t highest, uint64_t deleted_to) {
    ASSERT_TRUE(run(engine_.update_item(store::Update("heads", Heads::key_of({.journal = "shop", .pid = pid}))
                                            .set(head_attributes::kHighest, highest)
                                            .set(head_attributes::kDeletedTo, deleted_to))));
  };
  adopt("some", 900'000'000'000'000, 899'999'999'999'998);
  adopt("all", 900'000'000'000'000, 900'000'000'000'000);
  append("a", 1);
  place(records());
  EXPECT_EQ(runs(), (Runs{{.position = 1, .pid = "some", .number = 899'999'999'999'999, .count = 2},
                          {.position = 3, .pid = "a", .number = 1}}));
}

TEST_P(JournalOrder, AJournalWithVeryMuchToPlaceLeavesTheOthersTheirTurns) {
  const Entity other{.journal = "bank", .pid = "a"};
  ASSERT_TRUE(run(engine_.update_item(
      store::Update("heads", Heads::key_of(other)).set(head_attributes::kHighest, 900'000'000'000'000))));
  append_some();
  UnreliableStore store(engine_);
  store.fate = [](int n) { return n > 100 ? Fate::not_sent : Fate::well; };
  EXPECT_FALSE(handle(*placement(store), records()));
  expect_each_once();
  EXPECT_GT(run(order_.last("bank")).value(), 500'000u);
}

TEST_P(JournalOrder, HeadsAndTagsThatBreakTheLimitsAreLeftOut) {
  for (const auto& entity : {Entity{.journal = std::string(1000, 'j'), .pid = "a"},
                             Entity{.journal = "shop", .pid = std::string(950, 'p')},
                             Entity{.journal = "shop", .pid = "line\nbreak"}})
    ASSERT_TRUE(run(engine_.update_item(
        store::Update("heads", Heads::key_of(entity)).set(head_attributes::kHighest, 5))));
  append("a", 2, [](uint64_t number) {
    return std::vector<std::string>{"good", std::string(number == 1 ? 5'000 : 128, 't')};
  });
  place(records());
  expect_each_once();
  EXPECT_EQ(read(100, {.tag = "good"}), (std::vector<std::string>{"1 a/1", "2 a/2"}));
  EXPECT_EQ(read(100, {.tag = std::string(128, 't')}), (std::vector<std::string>{"2 a/2"}));
}

TEST_P(JournalOrder, ManyJournalsOneAfterTheOther) {
  const auto placements = placement(engine_);
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 1'500; ++i) {
      const Entity entity{.journal = fmt::format("journal-{}", i), .pid = "a"};
      ASSERT_TRUE(run(engine_.update_item(
          store::Update("heads", Heads::key_of(entity)).set(head_attributes::kHighest, round))));
    }
    EXPECT_TRUE(handle(*placements, records()));
  }
  for (int i = 0; i < 1'500; ++i) EXPECT_EQ(run(order_.last(fmt::format("journal-{}", i))).value(), 2u);
}

TEST_P(JournalOrder, WhoeverIsKilledBetweenTransactionsIsContinued) {
  // Over the borders of blocks, and with more tags than one transaction takes.
  move_head("large", 9'990);
  append("tagged", 40, [](uint64_t number) {
    std::vector<std::string> tags{"all"};
    for (int i = 0; i < 15; ++i) tags.push_back(fmt::format("tag-{}-{}", number, i));
    return tags;
  });
  move_head("large", 20'500);
  const auto all = records();
  UnreliableStore store(engine_);
  int killed = 0;
  std::set<uint64_t> lasts;
  // Each life gets one transaction further, of which every other one ends before its answer.
  for (bool done = false; !done; ++killed) {
    ASSERT_LT(killed, 100);
    store.transactions = 0;
    store.fate = [&](int n) {
      return n == 2 ? Fate::not_sent : killed % 2 == 1 ? Fate::answer_lost : Fate::well;
    };
    done = handle(*placement(store), all);
    lasts.insert(run(order_.last("shop")).value());
  }
  EXPECT_GE(lasts.size(), 8u);
  EXPECT_TRUE(lasts.contains(10'000));
  EXPECT_TRUE(lasts.contains(20'000));
  expect_each_once();
  EXPECT_EQ(read(100, {.tag = "all"}).size(), 40u);
  EXPECT_EQ(read(100, {.tag = "tag-17-3"}), (std::vector<std::string>{"10007 tagged/17"}));
}

TEST_P(JournalOrder, AnswersThatAreLostAreFoundInTheStore) {
  append_some();
  UnreliableStore store(engine_);
  store.fate = [](int n) { return n == 1 ? Fate::told_that_its_condition_failed : Fate::well; };
  const auto placements = placement(store);
  const auto all = records();
  EXPECT_TRUE(handle(*placements, std::span(all).first(5)));
  EXPECT_EQ(store.transactions, 1);
  store.fate = [](int n) { return n == 2 ? Fate::answer_lost : Fate::well; };
  EXPECT_FALSE(handle(*placements, all));
  EXPECT_TRUE(handle(*placements, all));
  EXPECT_EQ(store.transactions, 2);
  expect_each_once();
}

TEST_P(JournalOrder, TwoWhoReadTheSameShardDoNotGiveTwoPositions) {
  append_some(200);
  const auto all = records();
  const auto read_all = [&] {
    const auto placements = placement(engine_);
    for (size_t first = 0; first < all.size(); first += 10)
      EXPECT_TRUE(
          handle(*placements, std::span(all).subspan(first, std::min<size_t>(10, all.size() - first))));
  };
  std::thread other(read_all);
  read_all();
  other.join();
  expect_each_once();
}

TEST_P(JournalOrder, ShardsThatAreReadAtOnceShareOneOrder) {
  append_some(200);
  std::map<std::string, std::vector<store::StreamRecord>> shards;
  for (const auto& record : records())
    shards[fmt::format("shard-{}", slice_of(Heads::entity_of(record.keys)->pid) % 4)].push_back(record);
  ASSERT_GT(shards.size(), 1u);
  // Each process has two coroutines, which take turns.
  const auto read_all = [&] {
    const auto placements = placement(engine_);
    boost::asio::io_context context;
    for (const auto& [shard, some] : shards)
      boost::asio::co_spawn(context, placements->handle(shard, some),
                            [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
    context.run();
  };
  std::thread other(read_all);
  read_all();
  other.join();
  expect_each_once();
}

TEST_P(JournalOrder, NoRowReachesIntoTheNextBlock) {
  move_head("a", 9'999);
  place(records());
  move_head("b", 2);
  move_head("a", 25'000);
  place(records());
  expect_each_once();
  std::set<std::string> partitions;
  for (const auto& row : order_rows()) {
    const auto partition = store::text_of(row, kOrderPartition);
    if (!partition.contains("#all#")) continue;
    partitions.insert(partition);
    const auto row_runs = runs_of(row, Positions::dense).value();
    EXPECT_EQ(partition, all_partition("shop", row_runs.front().position));
    EXPECT_EQ(partition, all_partition("shop", row_runs.back().last_position()));
  }
  EXPECT_EQ(partitions, (std::set<std::string>{"shop#all#0", "shop#all#1", "shop#all#2", "shop#all#3"}));
}

TEST_P(JournalOrder, LongIdsAreInSeveralRows) {
  for (int i = 0; i < 250; ++i) move_head(fmt::format("{:0>800}", i), 1);
  place(records());
  expect_each_once();
  size_t rows = 0;
  for (const auto& row : order_rows()) {
    EXPECT_LT(row.size(), 100'000u);
    rows += store::text_of(row, kOrderPartition).contains("#all#") ? 1 : 0;
  }
  EXPECT_EQ(rows, 3u);
}

TEST_P(JournalOrder, ATagHasItsEventsAtThePositionsOfAll) {
  append_some(60);
  place(records());
  const auto all = read(1000);
  const auto even = read(1000, {.tag = "even"});
  EXPECT_FALSE(even.empty());
  for (const auto& one : even) EXPECT_EQ(std::ranges::count(all, one), 1) << one;
  EXPECT_EQ(read(3, {.tag = "even"}), even);
  auto reversed = even;
  std::ranges::reverse(reversed);
  EXPECT_EQ(read_backward(3, {.tag = "even"}), reversed);
  // From behind any position.
  for (uint64_t after = 0; after <= all.size(); ++after) {
    const auto page = run(order_.read("shop", after, 1, {.tag = "even"})).value();
    const auto next = std::ranges::find_if(even, [&](const auto& one) { return std::stoull(one) > after; });
    ASSERT_EQ(page.events.size(), next == even.end() ? 0u : 1u);
    if (next != even.end()) EXPECT_EQ(text_of(page.events[0]), *next);
    if (next == even.end()) EXPECT_EQ(page.position, page.last);
  }
}

TEST_P(JournalOrder, SlicesDivideTheOrder) {
  for (int i = 0; i < 100; ++i) append(fmt::format("{}-is-an-entity", i % 30), 1);
  place(records());
  std::vector<std::string> together;
  for (int part = 0; part < 4; ++part) {
    const Filter filter{.first_slice = part * 256, .last_slice = part * 256 + 255};
    const auto some = read(1000, filter);
    EXPECT_FALSE(some.empty());
    EXPECT_EQ(read(2, filter), some);
    together.insert(together.end(), some.begin(), some.end());
  }
  auto all = read(1000);
  std::ranges::sort(all);
  std::ranges::sort(together);
  EXPECT_EQ(together, all);
}

TEST_P(JournalOrder, WhatIsDeletedExpiredOrGoneIsLeftOut) {
  append("a", 5);
  append("b", 2, {}, clock_.now() + std::chrono::hours(1));
  append("c", 1);
  place(records());
  EXPECT_EQ(read(3).size(), 8u);
  delete_to("a", 3);
  EXPECT_EQ(read(100), (std::vector<std::string>{"4 a/4", "5 a/5", "6 b/1", "7 b/2", "8 c/1"}));
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(read(2), (std::vector<std::string>{"4 a/4", "5 a/5", "8 c/1"}));
  delete_to("a", 5);
  remove_row("a", 5);
  EXPECT_EQ(read_backward(1), (std::vector<std::string>{"8 c/1"}));
  delete_to("c", 1);
  const auto page = run(order_.read("shop", 0, 100, {})).value();
  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.position, 8u);
}

TEST_P(JournalOrder, AnEventThatIsMissingIsAnErrorThatNamesIt) {
  const auto tagged = [](uint64_t) { return std::vector<std::string>{"all"}; };
  append("a", 9, tagged);
  append("b", 2, tagged);
  place(records());
  remove_row("a", 7);
  const std::string hole =
      "at position 7: event 7 of a is missing, and was not deleted: its history has a hole";
  for (const Filter& filter : {Filter(), Filter{.tag = "all"}}) {
    for (const uint64_t after : {0, 6}) {
      const auto page = run(order_.read("shop", after, 100, filter));
      ASSERT_FALSE(page);
      EXPECT_EQ(page.error().code, store::ErrorCode::internal);
      EXPECT_EQ(page.error().message, hole);
    }
    EXPECT_EQ(run(order_.read_backward("shop", 100, 100, filter)).error().message, hole);
  }
  EXPECT_EQ(run(order_.read("shop", 0, 6, {})).value().events.size(), 6u) << "what is before it";
  EXPECT_EQ(run(order_.read("shop", 7, 100, {})).value().events.size(), 4u) << "and behind it";
  // Of one that has a time to live nobody knows whether it has gone.
  const Entity entity{.journal = "shop", .pid = "a"};
  ASSERT_TRUE(run(engine_.update_item(
      store::Update("heads", Heads::key_of(entity)).set(head_attributes::kExpiringTo, 7))));
  EXPECT_EQ(read(100).size(), 10u);
}

TEST_P(JournalOrder, ABatchThatAnotherProgramHasNotFinishedIsNoHole) {
  if (std::string_view(GetParam()) == "keys") GTEST_SKIP() << "its rows say nothing about batches";
  const Entity entity{.journal = "shop", .pid = "a"};
  append("a", 2);
  // Rows of 3 to 6, which were to be written together; 4 and 6 never were.
  for (const uint64_t index : {0, 2})
    for (auto& row :
         foreign_rows(Kind::blocks, entity, 3 + index, Event::BatchPlace{.index = index, .last = 3}))
      ASSERT_TRUE(run(engine_.put_item(store::Put("events", std::move(row)))));
  move_head("a", 4);
  append("a", 1);
  place(records());
  EXPECT_EQ(read(100), (std::vector<std::string>{"1 a/1", "2 a/2", "7 a/7"}));
}

TEST_P(JournalOrder, APageHasNotMuchMoreBytesThanItMay) {
  const Entity entity{.journal = "shop", .pid = "a"};
  std::set<uint64_t> large{1, 30, 31, 32, 33};
  for (uint64_t number = 1; number <= 60; ++number)
    ASSERT_TRUE(run(engine_.put_item(store::Put(
        "events",
        layout_->row_of(entity, number, {.payload = std::string(large.contains(number) ? 200'000 : 10, 'x')},
                        {.append_id = "append", .time = clock_.now()})))));
  move_head("a", 60);
  place(records());
  for (const auto direction : {Direction::forward, Direction::backward}) {
    const bool forward = direction == Direction::forward;
    std::vector<uint64_t> seen;
    size_t pages = 0;
    for (uint64_t position = forward ? 0 : 61; forward ? position < 60 : position > 1; ++pages) {
      const auto page = forward ? run(order_.read("shop", position, 100, {}, 300'000)).value()
                                : run(order_.read_backward("shop", position, 100, {}, 300'000)).value();
      size_t bytes = 0;
      for (const auto& placed : page.events) {
        EXPECT_LT(bytes, 300'000u);
        bytes += placed.event.row().bytes().size();
        seen.push_back(placed.position);
      }
      ASSERT_FALSE(page.events.empty());
      position = page.position;
    }
    EXPECT_GE(pages, 3u);
    if (!forward) std::ranges::reverse(seen);
    ASSERT_EQ(seen.size(), 60u);
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
  }
}

TEST_P(JournalOrder, APageLooksAtNotMuchMoreThanItHas) {
  move_head("gone", 5'000);
  delete_to("gone", 5'000);
  append("a", 1);
  place(records());
  const auto page = run(order_.read("shop", 0, 10, {})).value();
  EXPECT_TRUE(page.events.empty());
  EXPECT_LE(page.position, 100u);
  EXPECT_EQ(page.last, 5'001u);
  EXPECT_EQ(read(100), (std::vector<std::string>{"5001 a/1"}));
}

TEST_P(JournalOrder, LargeEventsEndAPage) {
  const Entity entity{.journal = "shop", .pid = "a"};
  for (uint64_t number = 1; number <= 60; ++number)
    ASSERT_TRUE(run(engine_.put_item(
        store::Put("events", layout_->row_of(entity, number, {.payload = std::string(300'000, 'x')},
                                             {.append_id = "append", .time = clock_.now()})))));
  move_head("a", 60);
  place(records());
  const auto page = run(order_.read("shop", 0, 1000, {})).value();
  EXPECT_GE(page.events.size(), 20u);
  EXPECT_LE(page.events.size(), 30u);
  EXPECT_EQ(page.position, page.events.size());
}

TEST_P(JournalOrder, AMissingOrDamagedRowIsAnErrorThatSaysWhere) {
  for (int i = 0; i < 4; ++i) {
    append("a", 3);
    place(records());
  }
  const auto key = [](int number) {
    return store::Row().set(kOrderPartition, "shop#all#0").set(kOrderNumber, number);
  };
  ASSERT_TRUE(run(engine_.delete_item(store::Delete("order", key(7)))));
  for (const uint64_t after : {0, 4, 6, 7}) {
    const auto page = run(order_.read("shop", after, 100, {}));
    ASSERT_FALSE(page) << after;
    EXPECT_EQ(page.error().message, fmt::format("position {} of the journal shop is missing from its order",
                                                std::max<uint64_t>(after + 1, 7)));
  }
  EXPECT_EQ(run(order_.read_backward("shop", 100, 100, {})).error().message,
            "position 9 of the journal shop is missing from its order");
  EXPECT_EQ(run(order_.read("shop", 9, 100, {})).value().events.size(), 3u);
  ASSERT_TRUE(run(engine_.put_item(store::Put("order", key(7).set(kOrderRuns, store::Binary{"\x01x"})))));
  EXPECT_EQ(run(order_.read("shop", 0, 100, {})).error().message,
            "the row of shop#all#0 at position 7 cannot be read: its bytes are damaged");
}

TEST_P(JournalOrder, MarksAreForgottenOnceTheirShardsAreGone) {
  const auto marks = [&] {
    const auto row = run(engine_.get_item({.table = "order", .key = order_key("shop"), .consistent = true}));
    std::set<std::string> names;
    for (const auto& [shard, mark] : state_of(row.value().item).marks) names.insert(shard);
    return names;
  };
  const auto there = open_shard();
  append("a", 1);
  const auto first = records();
  place(first, "gone");
  append("b", 1);
  const auto second = records();
  place(std::span(second).last(1), there);
  clock_.advance(std::chrono::hours(23));
  append("b", 1);
  auto more = records();
  place(std::span(more).last(1), "new");
  EXPECT_EQ(marks(), (std::set<std::string>{"gone", there, "new"}));
  // A store that was closed for long has its records for a while when it is opened, however old they are.
  clock_.advance(std::chrono::hours(72));
  append("c", 1);
  more = records();
  place(std::span(more).last(1), "newer");
  EXPECT_EQ(marks(), (std::set<std::string>{there, "newer"}));
  place(std::span(second).last(1), there);
  expect_each_once();
}

TEST_P(JournalOrder, WhoeverIsToldHearsOfEachLastPosition) {
  std::vector<uint64_t> told;
  const auto placements = placement(engine_, [&](const std::string& journal, uint64_t last) {
    EXPECT_EQ(journal, "shop");
    told.push_back(last);
  });
  append("a", 3);
  EXPECT_TRUE(handle(*placements, records()));
  append("b", 2);
  EXPECT_TRUE(handle(*placements, records()));
  EXPECT_EQ(told, (std::vector<uint64_t>{3, 5}));
}

}  // namespace
}  // namespace tabella::journal

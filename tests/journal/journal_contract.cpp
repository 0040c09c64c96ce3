// Appending: what is expected, epochs, batch ids, sizes, and many at once.
#include <atomic>
#include <map>
#include <thread>

#include "journal/head_attributes.h"
#include "journal/journal_fixture.h"

namespace tabella::journal {
namespace {

class Appending : public JournalContract {
 protected:
  // So many threads, each with a process of its own.
  void side_by_side(int count, const std::function<void(Journal&, int)>& work) {
    std::vector<std::unique_ptr<Process>> processes;
    for (int i = 0; i < count; ++i) processes.push_back(process());
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] { work(processes[static_cast<size_t>(i)]->journal, i); });
  }

  Append one(std::string payload) { return {.entity = kCart, .events = {{.payload = std::move(payload)}}}; }
};
TABELLA_JOURNAL_CONTRACT(Appending);

TEST_P(Appending, NumbersEventsFromOne) {
  EXPECT_EQ(extent().highest, 0u);
  EXPECT_EQ(append(1), "1-1");
  EXPECT_EQ(append(3), "2-4");
  EXPECT_EQ(read(), numbers(1, 4));
  EXPECT_EQ(extent().lowest, 1u);
  EXPECT_EQ(extent().highest, 4u);
}

TEST_P(Appending, KeepsAllThatAnEventHas) {
  const NewEvent event{.payload = R"({"a":1})",
                       .is_json = true,
                       .type = "added",
                       .metadata = R"({"by":"ann"})",
                       .tags = {"blue", "green"},
                       .id = "event-1",
                       .serializer = 33,
                       .manifest = "note/1"};
  EXPECT_EQ(append({.entity = kCart, .events = {event, {.payload = std::string("\0\xff", 2)}}, .epoch = 7}),
            "1-2");
  auto replay = journal().replay(kCart, {});
  const auto found = run(replay.next()).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].payload(), event.payload);
  EXPECT_TRUE(found[0].is_json());
  EXPECT_EQ(found[0].type(), "added");
  EXPECT_EQ(found[0].metadata(), event.metadata);
  EXPECT_EQ(found[0].tags(), event.tags);
  EXPECT_EQ(found[0].id(), "event-1");
  EXPECT_EQ(found[0].serializer(), 33);
  EXPECT_EQ(found[0].manifest(), "note/1");
  EXPECT_EQ(found[0].epoch(), 7u);
  EXPECT_EQ(epoch_milliseconds(*found[0].time()), epoch_milliseconds(clock().now()));
  EXPECT_FALSE(found[0].append_id().empty());
  EXPECT_EQ(found[1].payload(), std::string("\0\xff", 2));
  EXPECT_FALSE(found[1].is_json());
  EXPECT_EQ(found[1].append_id(), found[0].append_id());
  EXPECT_NE(found[1].id(), found[0].id());
  EXPECT_EQ(found[1].serializer(), kByteArraySerializer);
}

TEST_P(Appending, TellsWhatIsTheCaseInsteadOfWhatWasExpected) {
  EXPECT_EQ(append(1, Expected::version(1)), "version 0");
  EXPECT_EQ(append(1, Expected::none()), "1-1");
  EXPECT_EQ(append(1, Expected::none()), "version 1");
  EXPECT_EQ(append(2, Expected::version(1)), "2-3");
  EXPECT_EQ(append(1, Expected::version(1)), "version 3");
  EXPECT_EQ(append(1, Expected::version(4)), "version 3");
  EXPECT_EQ(append(150, Expected::version(2)), "version 3");
  EXPECT_EQ(append(150, Expected::version(3)), "4-153");
  EXPECT_EQ(append(1, Expected::any()), "154-154");
  EXPECT_EQ(read(), numbers(1, 154));
}

TEST_P(Appending, KeepsEntitiesAndJournalsApart) {
  const std::vector<Entity> all = {{"shop", "a"},  {"shop", "a-0"}, {"shop", "a-1"},
                                   {"shop2", "a"}, {"shop", "a#b"}, {"shop", "ä/ö ü"}};
  for (const auto& entity : all)
    EXPECT_EQ(append({.entity = entity, .events = {{.payload = entity.journal + entity.pid}}}), "1-1");
  for (const auto& entity : all)
    EXPECT_EQ(read_from(journal(), {}, entity), std::vector{entity.journal + entity.pid});
}

TEST_P(Appending, LosesNothingWhenManyAppendAnyhow) {
  const int count = subject().is_dynamodb_local() ? 5 : 25;
  std::mutex mutex;
  std::map<std::string, std::string> answers;  // by payload
  side_by_side(4, [&](Journal& mine, int writer) {
    for (int i = 0; i < count; ++i) {
      const auto payload = fmt::format("{}:{}", writer, i);
      const auto answer = append_to(mine, one(payload));
      const std::scoped_lock lock(mutex);
      answers[payload] = answer;
    }
  });
  const auto found = read();
  ASSERT_EQ(found.size(), static_cast<size_t>(4 * count));
  std::vector<int> next(4, 0);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(answers[found[i]], fmt::format("{}-{}", i + 1, i + 1)) << found[i];
    const auto writer = static_cast<size_t>(found[i][0] - '0');
    EXPECT_EQ(found[i], fmt::format("{}:{}", writer, next[writer]++));
  }
}

TEST_P(Appending, LetsOneWinWhereSeveralExpectTheSame) {
  std::mutex mutex;
  std::multimap<std::string, int> answers;
  side_by_side(4, [&](Journal& mine, int writer) {
    const auto answer =
        append_to(mine, {.entity = kCart,
                         .events = std::vector<NewEvent>(3, {.payload = std::to_string(writer)}),
                         .expected = Expected::none()});
    const std::scoped_lock lock(mutex);
    answers.emplace(answer, writer);
  });
  ASSERT_EQ(answers.count("1-3"), 1u);
  EXPECT_EQ(answers.count("version 3"), 3u);
  EXPECT_EQ(read(), std::vector<std::string>(3, std::to_string(answers.find("1-3")->second)));
}

TEST_P(Appending, DoesNotMixBatchesOfAnySize) {
  const std::vector<size_t> sizes = {1, 3, 150, 250};
  side_by_side(4, [&](Journal& mine, int writer) {
    const auto size = sizes[static_cast<size_t>(writer)];
    for (int i = 0; i < 3; ++i) {
      const auto answer = append_to(
          mine, {.entity = kCart,
                 .events = std::vector<NewEvent>(size, {.payload = fmt::format("{}:{}", writer, i)})});
      EXPECT_NE(answer.find('-'), std::string::npos) << answer;
    }
  });
  const auto found = read();
  ASSERT_EQ(found.size(), 3u * (1 + 3 + 150 + 250));
  for (size_t i = 0; i < found.size();) {
    const auto size = sizes[static_cast<size_t>(found[i][0] - '0')];
    for (size_t j = 0; j < size; ++j) EXPECT_EQ(found.at(i + j), found[i]);
    i += size;
  }
}

TEST_P(Appending, TakesBatchesAroundTheLimitsOfATransaction) {
  uint64_t highest = 0;
  for (const size_t count : {97u, 98u, 99u, 100u, 101u, 196u, 2500u}) {
    EXPECT_EQ(append(count, Expected::version(highest)), fmt::format("{}-{}", highest + 1, highest + count));
    highest += count;
    EXPECT_FALSE(head().staging);
    EXPECT_TRUE(run(journal().heads().unfinished_work())->empty());
  }
  EXPECT_EQ(read(), numbers(1, highest));
  for (const size_t count : {97u, 98u, 99u, 100u}) {
    auto batch = events(count, highest + 1);
    EXPECT_EQ(append({.entity = kCart, .events = batch, .batch_id = std::to_string(count)}),
              fmt::format("{}-{}", highest + 1, highest + count));
    EXPECT_EQ(append({.entity = kCart, .events = batch, .batch_id = std::to_string(count)}),
              fmt::format("{}-{} again", highest + 1, highest + count));
    highest += count;
  }
  EXPECT_EQ(read(), numbers(1, highest));
}

TEST_P(Appending, TakesBatchesOfManyMegabytes) {
  std::vector<NewEvent> batch;
  for (char c = 'a'; c <= 'z'; ++c) batch.push_back({.payload = std::string(340 * 1024, c)});
  EXPECT_EQ(append({.entity = kCart, .events = batch}), "1-26");
  EXPECT_EQ(append({.entity = kCart, .events = batch, .expected = Expected::version(26)}), "27-52");
  const auto found = read();
  ASSERT_EQ(found.size(), 52u);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == batch[i % 26].payload) << i;
  const auto back = read_backward();
  ASSERT_EQ(back.size(), 52u);
  for (size_t i = 0; i < back.size(); ++i) EXPECT_TRUE(back[i] == batch[(51 - i) % 26].payload) << i;
}

TEST_P(Appending, TakesEventsUpToTheirLimit) {
  const auto largest = std::string(350 * 1024 - 3, 'x');
  const std::string pid(kLongestPid, 'p');
  EXPECT_EQ(
      append(
          {.entity = {"shop", pid}, .events = {{.payload = largest, .tags = {}, .id = "abc"}}, .epoch = 1}),
      "1-1");
  EXPECT_EQ(append({.entity = {"shop", pid},
                    .events = std::vector<NewEvent>(20, {.payload = largest, .id = "abc"}),
                    .batch_id = std::string(256, 'b'),
                    .time_to_live = {}}),
            "2-21");
  EXPECT_EQ(read_from(journal(), {}, {"shop", pid}), std::vector<std::string>(21, largest));
  EXPECT_EQ(
      append(one(largest + "1234")),
      "event 1 of the append has 358401 bytes; an event may have 358400. Keep what is larger elsewhere, "
      "and its place in the event");
}

TEST_P(Appending, RefusesWhatCannotBeAnAppend) {
  EXPECT_EQ(append({.entity = kCart}), "there are no events: an append has at least one");
  EXPECT_EQ(append({.entity = kCart, .events = events(10'001)}),
            "there are 10001 events; an append may have 10000");
  EXPECT_EQ(
      append({.entity = kCart, .events = std::vector<NewEvent>(100, {.payload = std::string(345'000, 'x')})}),
      "the events have 34500000 bytes together; an append may have 33554432");
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .batch_id = std::string(257, 'b')}),
            "the batch id has more than 256 bytes");
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .time_to_live = std::chrono::seconds(0)}),
            "a time to live is at least a second");
  EXPECT_NE(append({.entity = {"a-P-b", "x"}, .events = events(1)}), "1-1");
  EXPECT_NE(append({.entity = {"shop", ""}, .events = events(1)}), "1-1");
  NewEvent tagged{.payload = "x"};
  for (int i = 0; i < 21; ++i) tagged.tags.push_back(std::to_string(i));
  EXPECT_EQ(append({.entity = kCart, .events = {tagged}}), "event 1 of the append has more than 20 tags");
  EXPECT_EQ(extent().highest, 0u);
  EXPECT_EQ(count_rows(kEventsTable), 0u);
}

// --- epochs

TEST_P(Appending, RefusesWritersWithAnOlderEpoch) {
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .epoch = 3}), "1-1");
  EXPECT_EQ(append({.entity = kCart, .events = events(1, 2), .epoch = 3}), "2-2");
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .epoch = 2}), "epoch 3");
  EXPECT_EQ(append({.entity = kCart, .events = events(200), .epoch = 2}), "epoch 3");
  EXPECT_EQ(append({.entity = kCart, .events = events(1, 3), .expected = Expected::version(2), .epoch = 5}),
            "3-3");
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .expected = Expected::version(3), .epoch = 3}),
            "epoch 5");
  EXPECT_EQ(append({.entity = kCart, .events = events(1, 4)}), "4-4");
  EXPECT_EQ(extent().epoch, 5u);
  EXPECT_EQ(read(), numbers(1, 4));
}

TEST_P(Appending, GivesEveryWriterAHigherEpoch) {
  EXPECT_EQ(run(journal().take_epoch(kCart)).value(), 1u);
  EXPECT_EQ(extent().highest, 0u);
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .expected = Expected::none(), .epoch = 1}), "1-1");
  EXPECT_EQ(run(journal().take_epoch(kCart)).value(), 2u);
  EXPECT_EQ(append({.entity = kCart, .events = events(1), .epoch = 1}), "epoch 2");
  EXPECT_EQ(append({.entity = kCart, .events = events(1, 2), .epoch = 9}), "2-2");
  EXPECT_EQ(run(journal().take_epoch(kCart)).value(), 10u);

  std::mutex mutex;
  std::set<uint64_t> taken;
  side_by_side(4, [&](Journal& mine, int) {
    for (int i = 0; i < 5; ++i) {
      const auto epoch = run(mine.take_epoch(kCart)).value();
      const std::scoped_lock lock(mutex);
      EXPECT_TRUE(taken.insert(epoch).second);
    }
  });
  EXPECT_EQ(taken.size(), 20u);
  EXPECT_EQ(*taken.begin(), 11u);
}

// --- batch ids

TEST_P(Appending, AnswersABatchThatComesAgainAsTheFirstTime) {
  const Append small{.entity = kCart, .events = events(3), .expected = Expected::none(), .batch_id = "small"};
  EXPECT_EQ(append(small), "1-3");
  EXPECT_EQ(append(small), "1-3 again");
  EXPECT_EQ(append({.entity = kCart, .events = events(300, 4), .batch_id = "large"}), "4-303");
  EXPECT_EQ(append({.entity = kCart, .events = events(300, 4), .batch_id = "large"}), "4-303 again");
  EXPECT_EQ(append(small), "1-3 again");
  EXPECT_EQ(append({.entity = kCart, .events = events(2), .batch_id = "small"}), "batch 3");
  EXPECT_EQ(append({.entity = kCart, .events = events(3), .batch_id = "large"}), "batch 300");
  EXPECT_EQ(append({.entity = {"shop", "other"}, .events = events(2), .batch_id = "small"}), "1-2");
  EXPECT_EQ(read(), numbers(1, 303));
}

TEST_P(Appending, MakesABatchOnceThatComesFromSeveralAtOnce) {
  uint64_t first = 1;
  for (const size_t size : {2u, 220u}) {
    std::mutex mutex;
    std::map<std::string, int> answers;
    side_by_side(4, [&](Journal& mine, int) {
      const auto answer =
          append_to(mine, {.entity = kCart, .events = events(size, first), .batch_id = std::to_string(size)});
      const std::scoped_lock lock(mutex);
      ++answers[answer];
    });
    const auto last = first + size - 1;
    EXPECT_EQ(answers[fmt::format("{}-{}", first, last)], 1) << answers.begin()->first;
    EXPECT_EQ(answers[fmt::format("{}-{} again", first, last)], 3) << answers.begin()->first;
    first = last + 1;
  }
  EXPECT_EQ(read(), numbers(1, 222));
}

TEST_P(Appending, KnowsABatchWhenItsEventsAreDeleted) {
  const Append batch{.entity = kCart, .events = events(3), .batch_id = "b"};
  EXPECT_EQ(append(batch), "1-3");
  EXPECT_EQ(run(journal().delete_to(kCart, 3, true)).value(), 3u);
  EXPECT_EQ(append(batch), "1-3 again");
  EXPECT_EQ(append(1), "4-4");
}

}  // namespace
}  // namespace tabella::journal

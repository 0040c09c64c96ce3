// What the engine promises beyond Store's contract: keys, the cache, the writer.
#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/item_cache.h"
#include "engine/keys.h"
#include "item/value.h"
#include "store/rows.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::engine {
namespace {

using test::Folder;

std::string sort_key(const item::Value& value) {
  std::string key;
  keys::append_sort(key, item::ValueView(item::encode(value)));
  return key;
}

TEST(Keys, OrderStringsByTheirBytes) {
  const std::vector<std::string> ordered = {"",
                                            std::string(1, '\0'),
                                            std::string(2, '\0'),
                                            std::string("\0\xff", 2),
                                            std::string(1, '\1'),
                                            "a",
                                            std::string("a\0", 2),
                                            std::string("a\0b", 3),
                                            "ab",
                                            "b",
                                            "\xff"};
  for (size_t i = 1; i < ordered.size(); ++i)
    EXPECT_LT(sort_key(item::Value::string(ordered[i - 1])), sort_key(item::Value::string(ordered[i]))) << i;
}

TEST(Keys, EndAfterAllWithAPrefix) {
  EXPECT_EQ(keys::end_of("ab"), "ac");
  EXPECT_EQ(keys::end_of("a\xff\xff"), "b");
}

TEST(ItemCache, NeverKeepsWhatACommitReplaced) {
  const Folder folder;
  Database database({.folder = folder.path(), .durability = Durability::relaxed});
  ItemCache cache(database, 1u << 20);
  Batch batch;
  batch.put("key", "old");
  database.write(batch);
  EXPECT_EQ(cache.get("key"), "old");

  const ItemCache::Written written = {{"key", "new"}};
  cache.before_commit(written);
  EXPECT_EQ(cache.get("key"), "old") << "read from the database, and not taken in";
  batch.clear();
  batch.put("key", "new");
  database.write(batch);
  EXPECT_EQ(cache.get("key"), "new");
  cache.after_commit(written);
  EXPECT_EQ(cache.get("key"), "new");

  const ItemCache::Written removed = {{"key", std::nullopt}};
  cache.before_commit(removed);
  batch.clear();
  batch.remove("key");
  database.write(batch);
  cache.after_commit(removed);
  EXPECT_EQ(cache.get("key"), std::nullopt);
}

TEST(ItemCache, StaysWithinItsBytes) {
  const Folder folder;
  Database database({.folder = folder.path(), .durability = Durability::relaxed});
  ItemCache cache(database, 1u << 20);
  for (int i = 0; i < 20'000; ++i) {
    const ItemCache::Written written = {{"key" + std::to_string(i), std::string(500, 'x')}};
    cache.before_commit(written);
    cache.after_commit(written);
  }
  int kept = 0;
  for (int i = 0; i < 20'000; ++i) kept += cache.get("key" + std::to_string(i)).has_value() ? 1 : 0;
  EXPECT_GT(kept, 500);
  EXPECT_LT(kept, 2200);
}

class WriterTest : public testing::Test {
 protected:
  const Folder folder;
  Database database{{.folder = folder.path(), .durability = Durability::relaxed}};
  ItemCache cache{database, 1u << 20};
  Catalogue catalogue;
  Streams streams;
  const SystemClock clock;
  Writer writer{Stored{database, cache, catalogue, streams, clock}};
};

TEST_F(WriterTest, RunsChangesOneAfterTheOtherFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kCallers = 20;
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      boost::asio::io_context context;
      for (int c = 0; c < kCallers; ++c)
        boost::asio::co_spawn(
            context,
            [&]() -> boost::asio::awaitable<void> {
              for (int i = 0; i < kEach; ++i)
                co_await writer.execute([](WriteContext& write) {
                  const auto old = write.get("counter");
                  write.put("counter", std::to_string((old ? std::stoi(*old) : 0) + 1));
                });
            },
            boost::asio::detached);
      context.run();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cache.get("counter"), std::to_string(kThreads * kCallers * kEach));
  writer.stop();
  EXPECT_EQ(database.get("counter"), std::to_string(kThreads * kCallers * kEach));
}

TEST_F(WriterTest, LetsAFailingChangeDisturbNobody) {
  boost::asio::io_context context;
  bool thrown = false;
  boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        try {
          co_await writer.execute([](WriteContext&) { throw std::runtime_error("no"); });
        } catch (const std::runtime_error&) {
          thrown = true;
        }
        co_await writer.execute([](WriteContext& write) { write.put("a", "1"); });
      },
      boost::asio::detached);
  context.run();
  EXPECT_TRUE(thrown);
  EXPECT_EQ(cache.get("a"), "1");
}

TEST_F(WriterTest, TakesBackWhatAChangeWroteBeforeItFailed) {
  boost::asio::io_context context;
  boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        co_await writer.execute([](WriteContext& write) { write.put("a", "1"); });
        try {
          co_await writer.execute([](WriteContext& write) {
            write.put("a", "2");
            write.put("b", "2");
            write.remove("a");
            write.batch().put("x", "2");
            throw std::runtime_error("no");
          });
        } catch (const std::runtime_error&) {
        }
        co_await writer.execute([](WriteContext& write) {
          EXPECT_EQ(write.get("a"), "1");
          EXPECT_EQ(write.get("b"), std::nullopt);
          write.put("c", "3");
        });
      },
      boost::asio::detached);
  context.run();
  writer.stop();
  EXPECT_EQ(database.get("a"), "1");
  EXPECT_EQ(database.get("b"), std::nullopt);
  EXPECT_EQ(database.get("x"), std::nullopt);
  EXPECT_EQ(database.get("c"), "3");
}

// The filling of an index that meets a read error, for one.
TEST_F(WriterTest, TriesBackgroundWorkAgainThatFailed) {
  std::atomic<int> tries = 0;
  std::promise<void> done;
  writer.run_in_background([&](WriteContext& write) {
    write.put("a", std::to_string(++tries));
    if (tries == 1) throw DatabaseFailure("cannot be read");
    done.set_value();
    return true;
  });
  auto finished = done.get_future();
  while (tries == 0) std::this_thread::yield();
  while (writer.problem().empty() && tries == 1) std::this_thread::yield();
  EXPECT_EQ(cache.get("a"), std::nullopt);
  ASSERT_EQ(finished.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  writer.stop();
  EXPECT_EQ(database.get("a"), "2");
  EXPECT_EQ(writer.problem(), "");
}

TEST(Engine, RefusesDataWithoutAFormat) {
  const Folder folder;
  const SystemClock clock;
  {
    Database database({.folder = folder.path()});
    Batch batch;
    batch.put("something", "else");
    database.write(batch);
    database.close();
  }
  try {
    Engine engine({.folder = folder.path()}, clock);
    FAIL() << "opened";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string_view(error.what()).find("without a format"), std::string_view::npos)
        << error.what();
  }
}

TEST(Engine, RefusesAFolderInUseOrFromTheFuture) {
  const Folder folder;
  const SystemClock clock;
  const auto failure = [&]() -> std::string {
    try {
      Engine engine({.folder = folder.path()}, clock);
      return "opened";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  {
    Engine engine({.folder = folder.path()}, clock);
    EXPECT_NE(failure().find("is in use by another process"), std::string::npos) << failure();
  }
  {
    Database database({.folder = folder.path(), .durability = Durability::sync});
    Batch batch;
    batch.put(keys::meta("format"), "\x63");
    database.write(batch);
  }
  EXPECT_NE(failure().find("written by a newer version"), std::string::npos) << failure();
}

TEST(Engine, KeepsStreamRecordsForReadersThatWereGoneAsLongAsItWasClosed) {
  const Folder folder;
  ManualClock clock;
  const auto records = [](Engine& engine) {
    const auto arn = test::run(engine.list_streams({.table = "t"})).value().streams.at(0).arn;
    const auto shard = test::run(engine.describe_stream({.arn = arn})).value().shards.at(0).id;
    const auto iterator = test::run(engine.get_shard_iterator({.arn = arn, .shard = shard})).value();
    return test::run(engine.get_records({.iterator = iterator})).value().records.size();
  };
  {
    Engine engine({.folder = folder.path()}, clock);
    auto plan = store::plan_table("t", {{"id", item::Type::S}});
    plan.definition.stream = store::StreamView::keys_only;
    ASSERT_TRUE(test::run(engine.create_table({.definition = plan.definition})));
    ASSERT_TRUE(test::run(engine.put_item(store::Put("t", store::Row().set("id", "1")))));
  }
  clock.advance(std::chrono::hours(72));
  Engine engine({.folder = folder.path()}, clock);
  EXPECT_EQ(records(engine), 1u);
  clock.advance(std::chrono::minutes(16));
  EXPECT_EQ(records(engine), 0u);
}

}  // namespace
}  // namespace tabella::engine

#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "contract/contract.h"

namespace tabella::contract {
namespace {

using std::chrono::seconds;

class TimeToLive : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!advance(std::chrono::milliseconds{0})) GTEST_SKIP() << "its time cannot be moved";
  }

  int64_t now() const {
    return std::chrono::duration_cast<seconds>(clock().now().time_since_epoch()).count();
  }
  std::string enable(const std::string& table, bool enabled = true, const std::string& attribute = "ttl") {
    const auto result =
        run(store().update_time_to_live({.table = table, .enabled = enabled, .attribute = attribute}));
    if (!result) return result.error().message;
    EXPECT_TRUE(eventually([&] {
      return run(store().describe_time_to_live(table))->status != store::TimeToLiveStatus::enabling;
    }));
    return "ok";
  }
  std::string put_due(const std::string& table, const std::string& key, int64_t due) {
    return put(table, fmt::format(R"({{"pk":{{"S":"{}"}},"sk":{{"S":"x"}},"ttl":{{"N":"{}"}}}})", key, due));
  }
  bool is_there(const std::string& table, const std::string& key) {
    return get(table, fmt::format(R"({{"pk":{{"S":"{}"}},"sk":{{"S":"x"}}}})", key)) != "none";
  }
  // Once this item, due with the others, is gone, they had their turn.
  void sweep(const std::string& table) {
    put_due(table, "marker", now() - 1);
    EXPECT_TRUE(eventually([&] { return !is_there(table, "marker"); }));
  }
};

TEST_P(TimeToLive, DeletesWhatIsDueAndSaysWhoDidIt) {
  const auto arn = create_with_stream("items", store::StreamView::new_and_old_images);
  EXPECT_EQ(enable("items"), "ok");
  put_due("items", "soon", now() + 10);
  put_due("items", "later", now() + 1000);
  sweep("items");
  EXPECT_TRUE(is_there("items", "soon"));
  advance(seconds{11});
  EXPECT_TRUE(eventually([&] { return !is_there("items", "soon"); }));
  EXPECT_TRUE(is_there("items", "later"));
  const auto all = records(arn);
  const auto& last = all.back();
  EXPECT_EQ(last.event, store::StreamEvent::remove);
  EXPECT_TRUE(last.by_service);
  EXPECT_EQ(last.keys.find("pk")->content(), "soon");
  EXPECT_TRUE(last.old_image);
  EXPECT_FALSE(all.front().by_service);
}

TEST_P(TimeToLive, LooksAtTheItemAsItIsWhenItsTimeComes) {
  create("items", 'S');
  EXPECT_EQ(enable("items"), "ok");
  put_due("items", "moved", now() + 10);
  put_due("items", "freed", now() + 10);
  put_due("items", "kept", now() + 10);
  put_due("items", "moved", now() + 1000);
  update({.table = "items",
          .key = item_of(R"({"pk":{"S":"freed"},"sk":{"S":"x"}})"),
          .update = "REMOVE #t",
          .options = {.attributes = {.names = store::Names{{"#t", "ttl"}}, .values = {}}}});
  advance(seconds{20});
  EXPECT_TRUE(eventually([&] { return !is_there("items", "kept"); }));
  sweep("items");
  EXPECT_TRUE(is_there("items", "moved"));
  EXPECT_TRUE(is_there("items", "freed"));
}

TEST_P(TimeToLive, IgnoresWhatCannotBeATime) {
  create("items", 'S');
  EXPECT_EQ(enable("items"), "ok");
  put("items", fmt::format(R"({{"pk":{{"S":"text"}},"sk":{{"S":"x"}},"ttl":{{"S":"{}"}}}})", now() - 100));
  put_due("items", "ancient", now() - int64_t{6} * 365 * 24 * 60 * 60);
  put_due("items", "negative", -5);
  put("items",
      fmt::format(R"({{"pk":{{"S":"fraction"}},"sk":{{"S":"x"}},"ttl":{{"N":"{}.7"}}}})", now() - 100));
  sweep("items");
  EXPECT_TRUE(is_there("items", "text"));
  EXPECT_TRUE(is_there("items", "ancient"));
  EXPECT_TRUE(is_there("items", "negative"));
  EXPECT_FALSE(is_there("items", "fraction"));
}

TEST_P(TimeToLive, CountsForItemsThatWereThereBefore) {
  create("items", 'S', {index("by_g", {"g"}, {})}, {}, {{"g", item::Type::S}});
  for (int i = 0; i < 600; ++i)
    put("items", fmt::format(R"({{"pk":{{"S":"{}"}},"sk":{{"S":"x"}},"g":{{"S":"g"}},"ttl":{{"N":"{}"}}}})",
                             i, now() + (i % 2 == 0 ? 5 : 500)));
  EXPECT_EQ(enable("items"), "ok");
  advance(seconds{10});
  EXPECT_TRUE(eventually([&] { return run(store().describe_table("items"))->item_count == 300; }));
  EXPECT_EQ(run(store().describe_table("items"))->global_indexes[0].item_count, 300);
  EXPECT_FALSE(is_there("items", "0"));
  EXPECT_TRUE(is_there("items", "1"));
}

// The entries of what is written stand in the batch of a group while the sweep of the next one runs.
TEST_P(TimeToLive, MissesNothingThatIsDueWhenItIsWritten) {
  create("items", 'S');
  EXPECT_EQ(enable("items"), "ok");
  std::atomic<bool> stop = false;
  std::thread time([&] {
    while (!stop) {
      advance(std::chrono::milliseconds{100});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  });
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 1500; ++i) put_due("items", fmt::format("{}-{}", w, i), now());
    });
  for (auto& writer : writers) writer.join();
  stop = true;
  time.join();
  EXPECT_TRUE(eventually([&] { return run(store().describe_table("items"))->item_count == 0; }));
}

TEST_P(TimeToLive, MissesNothingThatIsDueWhenItIsEnabled) {
  for (int i = 0; i < 30; ++i) {
    const auto name = fmt::format("items-{}", i);
    create(name, 'S');
    put_due(name, "a", now() - 100);
    put_due(name, "b", now() - 50);
    EXPECT_EQ(enable(name), "ok");
    EXPECT_TRUE(eventually([&] { return !is_there(name, "a") && !is_there(name, "b"); })) << name;
  }
}

TEST_P(TimeToLive, GoesOnAfterARestartAndEndsWhenDisabled) {
  create("items", 'S');
  EXPECT_EQ(enable("items"), "ok");
  put_due("items", "a", now() + 10);
  put_due("items", "b", now() + 100);
  restart();
  advance(seconds{20});
  EXPECT_TRUE(eventually([&] { return !is_there("items", "a"); }));
  EXPECT_EQ(enable("items", false), "ok");
  EXPECT_EQ(run(store().describe_time_to_live("items"))->status, store::TimeToLiveStatus::disabled);
  advance(seconds{200});
  create("others", 'S');
  EXPECT_EQ(enable("others"), "ok");
  sweep("others");
  EXPECT_TRUE(is_there("items", "b"));
}

TEST_P(TimeToLive, RefusesWhatIsSoAlready) {
  create("items", 'S');
  EXPECT_EQ(enable("items", false), "TimeToLive is already disabled");
  EXPECT_EQ(enable("items"), "ok");
  EXPECT_EQ(enable("items"), "TimeToLive is already enabled");
  EXPECT_EQ(enable("items", true, "other"),
            "TimeToLive is active on a different AttributeName: current AttributeName is ttl");
  EXPECT_EQ(enable("items", false, "other"),
            "TimeToLive is active on a different AttributeName: current AttributeName is ttl");
  EXPECT_EQ(enable("nowhere"), "Requested resource not found: Table: nowhere not found");
}

TABELLA_CONTRACT(TimeToLive);

}  // namespace
}  // namespace tabella::contract

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "contract/contract.h"
#include "item/number.h"
#include "store/stream_reader.h"
#include "support/own_thread.h"

namespace tabella::contract {
namespace {

using store::StreamReader;

// What was handled, in the order in which it was.
class Handled {
 public:
  void add(const store::StreamRecord& record) {
    const auto& image = *record.new_image;
    const std::lock_guard lock(mutex_);
    all_.emplace_back(image.find("pk")->content(), *item::number_to_int(image.find("v")->content()));
  }

  size_t count() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

  // How far each item has come, if no version was ever handled before all those before it.
  std::map<std::string, int64_t> in_order() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, int64_t> last;
    for (const auto& [item, version] : all_) {
      if (version > last[item] + 1) ADD_FAILURE() << item << " went from " << last[item] << " to " << version;
      last[item] = std::max(last[item], version);
    }
    return last;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, int64_t>> all_;
};

using Worker = test::OwnThread<StreamReader>;

class Readers : public StoreContract {
 protected:
  static constexpr int kItems = 40;

  void SetUp() override {
    StoreContract::SetUp();
    create_with_stream("items", store::StreamView::new_image);
  }

  // The next version of each item.
  void write_round() {
    ++version_;
    for (int from = 0; from < kItems; from += 20) {
      store::BatchWriteItemRequest request;
      auto& writes = request.tables.emplace_back("items", std::vector<store::BatchWrite>()).second;
      for (int i = from; i < from + 20; ++i)
        writes.push_back({.item = item_of(fmt::format(
                              R"({{"pk":{{"S":"{}"}},"sk":{{"S":"x"}},"v":{{"N":"{}"}}}})", i, version_))});
      ASSERT_TRUE(run(store().batch_write_item(std::move(request))));
    }
  }

  bool all_handled(const Handled& handled) {
    const auto last = handled.in_order();
    return last.size() == kItems &&
           std::ranges::all_of(last, [&](const auto& i) { return i.second == version_; });
  }

  std::unique_ptr<Worker> start(std::string worker, StreamReader::Handler handler,
                                std::string consumer = "tests") {
    return std::make_unique<Worker>(
        std::make_unique<StreamReader>(store(), clock(),
                                       StreamReader::Options{.table = "items",
                                                             .consumer = std::move(consumer),
                                                             .worker = std::move(worker),
                                                             .lease = std::chrono::milliseconds{200},
                                                             .batch = 50},
                                       std::move(handler)));
  }

  static StreamReader::Handler into(Handled& handled) {
    return [&handled](const store::StreamRecord& record) -> boost::asio::awaitable<void> {
      handled.add(record);
      co_return;
    };
  }

  int64_t version_ = 0;
};

TEST_P(Readers, HandleEveryRecordInOrderAcrossShards) {
  for (int i = 0; i < 40; ++i) write_round();
  Handled handled;
  const auto worker = start("one", into(handled));
  EXPECT_TRUE(eventually([&] { return handled.count() == 40u * kItems; }));
  for (int i = 0; i < 40; ++i) write_round();
  EXPECT_TRUE(eventually([&] { return handled.count() == 80u * kItems; }));
  worker->stop();
  EXPECT_TRUE(all_handled(handled));
  EXPECT_EQ(handled.count(), 80u * kItems) << "nobody died: nothing comes twice";
}

TEST_P(Readers, GoOnWhereTheyStoppedAlsoOverARestart) {
  Handled handled;
  write_round();
  {
    const auto worker = start("one", into(handled));
    EXPECT_TRUE(eventually([&] { return handled.count() == kItems; }));
  }
  restart();
  write_round();
  const auto worker = start("two", into(handled));
  EXPECT_TRUE(eventually([&] { return handled.count() == 2u * kItems; }));
  worker->stop();
  EXPECT_TRUE(all_handled(handled));
  EXPECT_EQ(handled.count(), 2u * kItems);
}

TEST_P(Readers, GiveEveryConsumerEverything) {
  Handled a;
  Handled b;
  const auto first = start("one", into(a), "a");
  const auto second = start("one", into(b), "b");
  for (int i = 0; i < 3; ++i) write_round();
  EXPECT_TRUE(eventually([&] { return all_handled(a) && all_handled(b); }));
}

TEST_P(Readers, TryAgainWhatFailed) {
  Handled handled;
  int failures = 0;
  const auto worker = start("one", [&](const store::StreamRecord& record) -> boost::asio::awaitable<void> {
    if (record.new_image->find("pk")->content() == "7" && failures < 3) {
      ++failures;
      throw std::runtime_error("not now");
    }
    handled.add(record);
    co_return;
  });
  for (int i = 0; i < 3; ++i) write_round();
  EXPECT_TRUE(eventually([&] { return handled.count() == 3u * kItems; }));
  worker->stop();
  EXPECT_EQ(failures, 3);
  EXPECT_TRUE(all_handled(handled));
}

// The lease of a handler that is slower than it runs out, and nobody else takes the shard.
TEST_P(Readers, SkipNothingWhenAHandlerIsSlowerThanItsLease) {
  Handled handled;
  for (int i = 0; i < 5; ++i) write_round();
  const auto worker = start("slow", [&](const store::StreamRecord& record) -> boost::asio::awaitable<void> {
    handled.add(record);
    if (handled.count() % 30 == 3) advance(std::chrono::milliseconds{300});
    co_return;
  });
  EXPECT_TRUE(eventually([&] { return all_handled(handled); }));
}

TEST_P(Readers, TakeOverFromOneThatDied) {
  Handled handled;
  for (int i = 0; i < 60; ++i) write_round();
  const auto doomed = start("doomed", [&](const store::StreamRecord& record) -> boost::asio::awaitable<void> {
    handled.add(record);
    if (handled.count() > 500) {  // stands still, with its leases
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, std::chrono::hours{1});
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  });
  EXPECT_TRUE(eventually([&] { return handled.count() > 500; }));
  doomed->die();
  const auto heir = start("heir", into(handled));
  for (int i = 0; i < 20; ++i) write_round();
  EXPECT_TRUE(eventually([&] {
    advance(std::chrono::milliseconds{20});
    return all_handled(handled);
  }));
}

TEST_P(Readers, ShareAStreamWhileTheyComeAndGo) {
  Handled handled;
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Worker>> workers(3);
  std::vector<std::unique_ptr<Worker>> dead;
  for (int i = 0; i < 3; ++i)
    workers[static_cast<size_t>(i)] = start(fmt::format("worker-{}", i), into(handled));
  for (int i = 0; i < 120; ++i) {
    write_round();
    advance(std::chrono::milliseconds{10});
    if (i % 6 != 0) continue;
    auto& worker = workers[random() % 2];  // one of the three stays
    if (worker && random() % 3 == 0) {
      worker->die();
      dead.push_back(std::move(worker));
    } else if (worker) {
      worker.reset();
    } else {
      worker = start(fmt::format("worker-again-{}", i), into(handled));
    }
  }
  EXPECT_TRUE(eventually([&] {
    advance(std::chrono::milliseconds{20});
    return all_handled(handled);
  }));
}

TEST_P(Readers, FinishAnOldStreamBeforeTheNewOne) {
  write_round();
  ASSERT_TRUE(run(store().update_table({.table = "items", .stream = store::UpdateTableRequest::Stream{}})));
  wait_until_active("items");
  ASSERT_TRUE(run(store().update_table(
      {.table = "items",
       .stream = store::UpdateTableRequest::Stream{.enabled = true, .view = store::StreamView::new_image}})));
  wait_until_active("items");
  write_round();
  Handled handled;
  const auto worker = start("one", into(handled));
  EXPECT_TRUE(eventually([&] { return handled.count() == 2u * kItems; }));
  EXPECT_TRUE(all_handled(handled));
}

TABELLA_CONTRACT(Readers);

}  // namespace
}  // namespace tabella::contract

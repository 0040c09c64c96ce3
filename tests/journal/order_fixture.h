// The order of a journal over the embedded engine: heads and events are written as an append writes them, and
// the records of the heads' stream are handed to placements as the test wants them.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "engine/engine.h"
#include "journal/head_attributes.h"
#include "journal/order.h"
#include "journal/placement.h"
#include "store/batches.h"
#include "store/rows.h"
#include "store/tables.h"
#include "support/empty_store.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::journal {

// The engine, whose transactions do not all go well.
class UnreliableStore final : public test::EmptyStore {
 public:
  enum class Fate { well, not_sent, answer_lost, told_that_its_condition_failed };

  explicit UnreliableStore(store::Store& store) : store_(store) {}

  std::function<Fate(int)> fate = [](int) { return Fate::well; };  // of the nth transaction, from 1 on
  int transactions = 0;

  store::Async<store::WriteResult> put_item(store::PutItemRequest request) override {
    return store_.put_item(std::move(request));
  }
  store::Async<store::GetItemResult> get_item(store::GetItemRequest request) override {
    return store_.get_item(std::move(request));
  }
  store::Async<store::Page> query(store::QueryRequest request) override {
    return store_.query(std::move(request));
  }
  store::Async<store::BatchGetItemResult> batch_get_item(store::BatchGetItemRequest request) override {
    return store_.batch_get_item(std::move(request));
  }
  store::Async<store::TransactWriteItemsResult> transact_write_items(
      store::TransactWriteItemsRequest request) override {
    const auto what = fate(++transactions);
    if (what == Fate::not_sent) throw std::runtime_error("killed before a transaction");
    auto result = co_await store_.transact_write_items(std::move(request));
    if (what == Fate::well || !result) co_return result;
    store::Error lost(store::ErrorCode::unavailable, "the answer was lost");
    if (what == Fate::told_that_its_condition_failed) {
      lost = {store::ErrorCode::transaction_canceled, "cancelled, the second time that it was sent"};
      lost.reasons = {{.code = "ConditionalCheckFailed", .message = "", .item = {}}};
    }
    lost.unsure = true;
    co_return std::unexpected(lost);
  }

 private:
  store::Store& store_;
};

class OrderFixture {
 protected:
  explicit OrderFixture(bool blocks = true)
      : layout_(blocks ? make_blocks_layout({.table = "events"}) : make_keys_layout({.table = "events"})) {
    const auto made = test::run(store::prepare_tables(
        engine_, {layout_->plan(), Heads::plan("heads"), Order::plan("order")}, store::Missing::create));
    EXPECT_TRUE(made) << made.error().message;
  }

  using TagsOf = std::function<std::vector<std::string>(uint64_t number)>;

  // As an append does it.
  void append(const std::string& pid, uint64_t count, const TagsOf& tags_of = {}, TimePoint expires = {}) {
    const Entity entity{.journal = "shop", .pid = pid};
    std::vector<store::BatchWrite> rows;
    const auto first = highest_[pid] + 1;
    for (auto number = first; number < first + count; ++number) {
      NewEvent event{.payload = pid + "/" + std::to_string(number)};
      if (tags_of) event.tags = tags_of(number);
      Recording recording{.append_id = "append", .time = clock_.now()};
      if (expires != TimePoint{}) recording.expires = expires;
      rows.push_back({.put = true, .item = layout_->row_of(entity, number, event, recording)});
    }
    ASSERT_TRUE(test::run(store::write_all(engine_, "events", std::move(rows))));
    move_head(pid, count, static_cast<bool>(tags_of));
  }
  // Without events: as if they had all been deleted since.
  void move_head(const std::string& pid, uint64_t count, bool tagged = false) {
    highest_[pid] += count;
    const Entity entity{.journal = "shop", .pid = pid};
    ASSERT_TRUE(test::run(engine_.update_item(store::Update("heads", Heads::key_of(entity))
                                                  .set(head_attributes::kHighest, highest_[pid])
                                                  .set(head_attributes::kTagged, tagged))));
  }
  void delete_to(const std::string& pid, uint64_t to) {
    const Entity entity{.journal = "shop", .pid = pid};
    ASSERT_TRUE(test::run(engine_.update_item(
        store::Update("heads", Heads::key_of(entity)).set(head_attributes::kDeletedTo, to))));
  }

  // All there are of a table's stream.
  std::vector<store::StreamRecord> records(const std::string& table = "heads") {
    std::vector<store::StreamRecord> all;
    for (const auto& stream : test::run(engine_.list_streams({.table = table, .start = {}})).value().streams)
      for (const auto& shard : test::run(engine_.describe_stream({.arn = stream.arn})).value().shards) {
        std::optional iterator =
            test::run(engine_.get_shard_iterator({.arn = stream.arn, .shard = shard.id})).value();
        while (iterator) {
          auto some = test::run(engine_.get_records({.iterator = *iterator})).value();
          all.insert(all.end(), some.records.begin(), some.records.end());
          iterator = some.records.empty() ? std::nullopt : some.next;
        }
      }
    return all;
  }

  std::unique_ptr<Placement> placement(store::Store& store, Placement::Told placed = {}) {
    return std::make_unique<Placement>(store, clock_, journal_, "order", std::move(placed));
  }
  // False: it has thrown.
  static bool handle(Placement& placement, std::span<const store::StreamRecord> records,
                     const std::string& shard = "shard-1") {
    boost::asio::io_context context;
    bool well = false;
    boost::asio::co_spawn(context, placement.handle(shard, records),
                          [&](const std::exception_ptr& failure) { well = !failure; });
    context.run();
    return well;
  }
  void place(std::span<const store::StreamRecord> records, const std::string& shard = "shard-1") {
    EXPECT_TRUE(handle(*placement(engine_), records, shard));
  }

  // The order as its rows have it, which have no gaps.
  std::vector<Run> runs() {
    std::vector<Run> all;
    while (true) {
      auto some = test::run(order_.runs("shop", all.empty() ? 0 : all.back().last_position()));
      EXPECT_TRUE(some) << some.error().message;
      if (!some || some->empty()) return all;
      all.insert(all.end(), some->begin(), some->end());
    }
  }
  // That each event of each entity is at one position, and in order.
  void expect_each_once() {
    std::map<std::string, uint64_t> seen;
    uint64_t position = 1;
    for (const auto& run : runs()) {
      EXPECT_EQ(run.position, position);
      EXPECT_EQ(run.number, seen[run.pid] + 1) << run.pid;
      seen[run.pid] = run.last_number();
      position = run.last_position() + 1;
    }
    EXPECT_EQ(seen, highest_);
    EXPECT_EQ(test::run(order_.last("shop")).value(), position - 1);
  }

  // All events, page by page, as "position pid/number".
  std::vector<std::string> read(size_t limit, const Filter& filter = {}) {
    std::vector<std::string> all;
    for (uint64_t position = 0;;) {
      const auto page = test::run(order_.read("shop", position, limit, filter));
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return all;
      EXPECT_LE(page->events.size(), limit);
      for (const auto& placed : page->events) all.push_back(text_of(placed));
      if (page->position == page->last) return all;
      EXPECT_GT(page->position, position);
      position = page->position;
    }
  }
  std::vector<std::string> read_backward(size_t limit, const Filter& filter = {}) {
    std::vector<std::string> all;
    for (uint64_t position = UINT64_MAX; position > 1;) {
      const auto page = test::run(order_.read_backward("shop", position, limit, filter));
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return all;
      EXPECT_LE(page->events.size(), limit);
      EXPECT_LT(page->position, position);
      for (const auto& placed : page->events) all.push_back(text_of(placed));
      position = page->position;
    }
    return all;
  }
  static std::string text_of(const Placed& placed) {
    EXPECT_EQ(placed.event.payload(), placed.pid + "/" + std::to_string(placed.event.number()));
    return std::to_string(placed.position) + " " + std::string(placed.event.payload());
  }

  std::vector<item::Item> order_rows() {
    return test::run(engine_.scan(store::Scan("order").consistent())).value().items;
  }

  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path() / "data", .durability = engine::Durability::relaxed},
                         clock_};
  std::unique_ptr<Layout> layout_;
  Journal journal_{engine_, clock_, *layout_, {.heads_table = "heads"}};
  Order order_{engine_, clock_, journal_, "order"};
  std::map<std::string, uint64_t> highest_;
};

}  // namespace tabella::journal

// Both layouts of events, the heads and the snapshots, over the embedded engine.
#include <set>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "journal/event_attributes.h"
#include "journal/head_attributes.h"
#include "journal/heads.h"
#include "journal/layout.h"
#include "journal/snapshots.h"
#include "store/batches.h"
#include "store/rows.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::journal {
namespace {

using store::Binary;
using store::Row;
using test::run;

const Entity kCart{.journal = "shop", .pid = "cart|1"};

class EngineTest {
 protected:
  void prepare(store::TablePlan plan) {
    const auto prepared = run(store::prepare_tables(engine_, {std::move(plan)}, store::Missing::create));
    ASSERT_TRUE(prepared) << prepared.error().message;
  }
  void put(const std::string& table, item::Item row) {
    const auto written = run(engine_.put_item(store::Put(table, std::move(row))));
    ASSERT_TRUE(written) << written.error().message;
  }

  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path() / "data", .durability = engine::Durability::relaxed},
                         clock_};
};

class Layouts : public testing::TestWithParam<const char*>, protected EngineTest {
 protected:
  Layouts() {
    const Layout::Options options{.table = "events", .sequence_shards = 4};
    layout_ = is_blocks() ? make_blocks_layout(options) : make_keys_layout(options);
    prepare(layout_->plan());
  }

  static bool is_blocks() { return std::string_view(GetParam()) == "blocks"; }

  void append(const Entity& entity, uint64_t number, const std::string& payload) {
    put("events", layout_->row_of(entity, number, {.payload = payload},
                                  {.append_id = "append-1", .time = clock_.now()}));
  }
  void append_all(const Entity& entity, uint64_t first, uint64_t last) {
    std::vector<store::BatchWrite> writes;
    for (auto number = first; number <= last; ++number)
      writes.push_back({.put = true,
                        .item = layout_->row_of(entity, number, {.payload = std::to_string(number)},
                                                {.append_id = "append-1", .time = clock_.now()})});
    ASSERT_TRUE(run(store::write_all(engine_, "events", std::move(writes))));
  }

  Layout::Step step(const Entity& entity, uint64_t from, uint64_t to, Direction direction) {
    auto read = run(layout_->read(engine_, entity, from, to, direction));
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return read ? std::move(*read) : Layout::Step();
  }

  // The numbers of all steps, each of which goes on where the last one says.
  std::vector<uint64_t> read_all(const Entity& entity, uint64_t from, uint64_t to, Direction direction) {
    const bool forward = direction == Direction::forward;
    std::vector<uint64_t> numbers;
    for (std::optional<uint64_t> at = forward ? from : to; at;) {
      const auto read = forward ? step(entity, *at, to, direction) : step(entity, from, *at, direction);
      EXPECT_LE(read.events.size(), 100u);
      for (const auto& event : read.events) numbers.push_back(event.number());
      if (read.next) {
        EXPECT_TRUE(from <= *read.next && *read.next <= to);
        EXPECT_TRUE(forward ? *read.next > *at : *read.next < *at);
      }
      at = read.next;
    }
    return numbers;
  }

  Layout::Counters counters(const Entity& entity) {
    return run(layout_->read_counters(engine_, entity)).value();
  }

  std::unique_ptr<Layout> layout_;
};

INSTANTIATE_TEST_SUITE_P(Journal, Layouts, testing::Values("blocks", "keys"),
                         [](const auto& info) { return std::string(info.param); });

std::vector<uint64_t> numbers_from_to(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (auto number = first; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

std::vector<uint64_t> backward(std::vector<uint64_t> numbers) {
  std::ranges::reverse(numbers);
  return numbers;
}

TEST_P(Layouts, AnEventIsReadAsItWasWritten) {
  const std::string payload("{\"a\":\0\xff", 7);
  const NewEvent event{.payload = payload,
                       .is_json = true,
                       .type = "added",
                       .metadata = R"({"by":"ann"})",
                       .tags = {"red", "blue", "red"},
                       .id = "e-1",
                       .serializer = 4711,
                       .manifest = "note/1"};
  const Recording recording{.append_id = "append-1",
                            .time = time_at(1'700'000'000'123),
                            .epoch = 7,
                            .expires = time_at(1'800'000'000'001),
                            .place = Event::BatchPlace{.index = 2, .last = 5}};
  put("events", layout_->row_of(kCart, 100, event, recording));
  auto read = step(kCart, 100, 100, Direction::forward);
  EXPECT_FALSE(read.next);
  ASSERT_EQ(read.events.size(), 1u);
  const auto& found = read.events.front();
  EXPECT_EQ(found.number(), 100u);
  EXPECT_EQ(found.payload(), payload);
  EXPECT_TRUE(found.is_json());
  EXPECT_EQ(found.type(), "added");
  EXPECT_EQ(found.metadata(), R"({"by":"ann"})");
  EXPECT_EQ(found.tags(), (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(found.id(), "e-1");
  EXPECT_EQ(found.serializer(), 4711);
  EXPECT_EQ(found.manifest(), "note/1");
  EXPECT_EQ(found.writer(), "append-1");
  EXPECT_EQ(found.append_id(), "append-1");
  EXPECT_EQ(found.time(), recording.time);
  EXPECT_EQ(found.epoch(), 7u);
  EXPECT_EQ(found.expires(), time_at(1'800'000'001'000));  // whole seconds, and not before
  EXPECT_FALSE(found.is_deleted());
  ASSERT_TRUE(found.batch_place());
  EXPECT_EQ(found.batch_place()->index, 2u);
  EXPECT_EQ(found.batch_place()->last, 5u);
}

TEST_P(Layouts, APlainEventHasNothingItWasNotGiven) {
  append(kCart, 1, "");
  const auto read = step(kCart, 1, 1, Direction::forward);
  ASSERT_EQ(read.events.size(), 1u);
  const auto& found = read.events.front();
  EXPECT_EQ(found.payload(), "");
  EXPECT_FALSE(found.is_json());
  EXPECT_EQ(found.id(), "append-1-1");
  EXPECT_EQ(found.serializer(), kByteArraySerializer);
  EXPECT_TRUE(found.tags().empty());
  EXPECT_FALSE(found.expires());
  EXPECT_FALSE(found.batch_place());
  for (const auto* name : {"idx", "cnt", "ep", "expires", "json", "tags", "eid", "type", "meta"})
    EXPECT_FALSE(found.row().find(name)) << name;
}

TEST_P(Layouts, RangesAreReadInBothDirections) {
  append_all(kCart, 1, 317);
  for (const auto& [from, to] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 317}, {1, 1}, {99, 99}, {99, 100}, {100, 199}, {100, 200}, {57, 258}, {300, 317}}) {
    EXPECT_EQ(read_all(kCart, from, to, Direction::forward), numbers_from_to(from, to));
    EXPECT_EQ(read_all(kCart, from, to, Direction::backward), backward(numbers_from_to(from, to)));
  }
  EXPECT_TRUE(read_all(kCart, 318, 400, Direction::forward).empty());
  EXPECT_TRUE(step(kCart, 5, 4, Direction::forward).events.empty());
  EXPECT_FALSE(step(kCart, 5, 4, Direction::backward).next);
  EXPECT_EQ(step(kCart, 0, 3, Direction::forward).events.size(), 3u);
  EXPECT_EQ(step(kCart, 20, 22, Direction::forward).events.size(), 3u);
}

TEST_P(Layouts, MissingEventsAreLeftOut) {
  for (const uint64_t number : {2, 99, 101, 350}) append(kCart, number, "x");
  const std::vector<uint64_t> there{2, 99, 101, 350};
  EXPECT_EQ(read_all(kCart, 1, 500, Direction::forward), there);
  EXPECT_EQ(read_all(kCart, 1, 500, Direction::backward), backward(there));
}

TEST_P(Layouts, EventsThatFillManyPagesAreAllRead) {
  const std::string large(300 * 1024, 'x');
  for (uint64_t number = 95; number <= 106; ++number) append(kCart, number, large);
  EXPECT_EQ(read_all(kCart, 1, 200, Direction::forward), numbers_from_to(95, 106));
  EXPECT_EQ(read_all(kCart, 1, 200, Direction::backward), backward(numbers_from_to(95, 106)));
  EXPECT_EQ(read_all(kCart, 95, 106, Direction::backward), backward(numbers_from_to(95, 106)));
}

TEST_P(Layouts, TheHighestNumbersThereAreCanBeReadAndLocated) {
  constexpr uint64_t kLast = INT64_MAX;
  append(kCart, kLast, "last");
  EXPECT_EQ(read_all(kCart, kLast - 150, UINT64_MAX, Direction::forward), std::vector<uint64_t>{kLast});
  const auto read = step(kCart, 1, UINT64_MAX, Direction::backward);
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_EQ(read.events.front().number(), kLast);
  EXPECT_EQ(layout_->locate(layout_->key_of(kCart, kLast))->number, kLast);
}

TEST_P(Layouts, WhateverAPidIsItsEventsAreItsOwn) {
  const std::vector<std::string> pids{"a",      "a-0",  "a-1", "a-0-0", "-",      "--",     "a-P-b",
                                      "a-SH-b", "-SL-", "P",   "P-1",   "cart|1", "日本語", "😀-1",
                                      "#",      "a#b",  "1",   "-1",    " ",      "a-P",    "P-P-P-1"};
  for (const auto& pid : pids) {
    append({.journal = "shop", .pid = pid}, 1, pid);
    append({.journal = "shop", .pid = pid}, 123, pid);
    append({.journal = "my-shop", .pid = pid}, 1, "my " + pid);
  }
  for (const auto& pid : pids) {
    const Entity entity{.journal = "shop", .pid = pid};
    EXPECT_EQ(read_all(entity, 1, 300, Direction::forward), (std::vector<uint64_t>{1, 123})) << pid;
    EXPECT_EQ(step(entity, 1, 1, Direction::forward).events.front().payload(), pid);
    for (const uint64_t number : {1, 99, 100, 12345}) {
      const auto located = layout_->locate(layout_->key_of(entity, number));
      ASSERT_TRUE(located) << pid;
      EXPECT_EQ(located->entity, entity) << pid;
      EXPECT_EQ(located->number, number) << pid;
    }
  }
}

TEST_P(Layouts, KeysThatAreNoEventsAreNotLocated) {
  const auto located = [&](const std::string& key, int64_t place = 1) {
    const item::Item row = is_blocks() ? Row().set("par", key).set("num", place) : Row().set("key", key);
    return layout_->locate(row);
  };
  EXPECT_TRUE(located("shop-P-a-7"));
  for (const auto* key :
       {"", "shop", "-P-a-7", "shop-P-", "shop-P-7", "shop-P--7", "shop-P-a-", "shop-P-a-x", "shop-P-a-07",
        "shop-P-a-+7", "shop-P-a-7 ", "shop-P-a-9223372036854775808", "shop-P-a-99999999999999999999999",
        "shop-SH-a-7", "shop-SL-a-7", "shop-SH-a-P-b-7", "shop-SL-a-P-b-7"})
    EXPECT_FALSE(located(key)) << key;
  EXPECT_FALSE(located("shop-P-a-0", 0));
  for (const auto& counter : layout_->high_counters(kCart, 1, 200)) EXPECT_FALSE(layout_->locate(counter));
  for (const auto& counter : layout_->low_counters(kCart, 200)) EXPECT_FALSE(layout_->locate(counter));
  EXPECT_FALSE(layout_->locate(item::Item(Row().set(layout_->key_attribute(), 5))));
  EXPECT_FALSE(layout_->locate(item::Item()));
  if (!is_blocks()) return;
  EXPECT_FALSE(located("shop-P-a-7", 100));
  EXPECT_FALSE(located("shop-P-a-7", -1));
  EXPECT_FALSE(located("shop-P-a-92233720368547758", 8));
  EXPECT_TRUE(located("shop-P-a-92233720368547758", 7));
  EXPECT_FALSE(layout_->locate(item::Item(Row().set("par", "shop-P-a-7").set("num", "1"))));
}

TEST_P(Layouts, CountersSayHowFarThereAreEvents) {
  EXPECT_EQ(counters(kCart).high, 0u);
  EXPECT_EQ(counters(kCart).deleted_to, 0u);
  uint64_t highest = 0;
  for (const uint64_t last : {1, 42, 99, 100, 101, 350, 1299, 1300}) {
    const auto rows = layout_->high_counters(kCart, highest + 1, last);
    EXPECT_LE(rows.size(), 1u);
    for (const auto& row : rows) put("events", row);
    highest = last;
    EXPECT_EQ(counters(kCart).high, is_blocks() ? last / 100 * 100 : last);
  }
  for (const uint64_t to : {1, 99, 100, 250, 1300}) {
    for (const auto& row : layout_->low_counters(kCart, to)) put("events", row);
    EXPECT_EQ(counters(kCart).deleted_to, to);
  }
  EXPECT_EQ(counters({.journal = "shop", .pid = "cart"}).high, 0u);
}

TEST_P(Layouts, TheTableHasAStreamAndATimeToLive) {
  const auto table = run(engine_.describe_table("events")).value();
  EXPECT_EQ(table.definition.stream, store::StreamView::keys_only);
  EXPECT_EQ(run(engine_.describe_time_to_live("events")).value().attribute, "expires");
}

TEST_P(Layouts, RowsOfOtherTypesAreReadWithoutHarm) {
  const std::string payload = is_blocks() ? "event" : "payload";
  const auto hostile = [&](uint64_t number) {
    Row row;
    if (is_blocks())
      row.set("par", "shop-P-cart|1-0").set("num", number);
    else
      row.set("key", "shop-P-cart|1-" + std::to_string(number));
    return row;
  };
  put("events", hostile(1));
  put("events", hostile(2).set(payload, "text").set("seq", "no number").set("sequenceNr", "none"));
  put("events", hostile(3).set("pay", Binary{"\x0a\xff"}));
  const auto read = step(kCart, 1, 5, Direction::forward);
  ASSERT_EQ(read.events.size(), 3u);
  for (const auto& event : read.events) EXPECT_EQ(event.payload(), "");
  auto counter = layout_->high_counters(kCart, 1, 100).front();
  auto changed = item::decode_item(counter);
  changed.set_member(is_blocks() ? "seq" : "sequenceNr", item::Value::string("many"));
  put("events", item::encode_item(changed));
  EXPECT_EQ(counters(kCart).high, 0u);
}

class Blocks : public testing::Test, protected EngineTest {
 protected:
  Blocks() { prepare(layout_->plan()); }
  std::unique_ptr<Layout> layout_ = make_blocks_layout({.table = "events"});
};

TEST_F(Blocks, RowsAreAsPekkoWritesThem) {
  const item::Item row =
      layout_->row_of(kCart, 312, {.payload = "x"}, {.append_id = "u", .time = time_at(5)});
  const item::Item expected = Row()
                                  .set("par", "shop-P-cart|1-3")
                                  .set("num", 12)
                                  .set("persistence_id", "cart|1")
                                  .set("seq", 312)
                                  .set("event", Binary{"x"})
                                  .set("ev_ser_id", 4)
                                  .set("writer_uuid", "u")
                                  .set("at", 5);
  EXPECT_TRUE(item::equal(row, expected));
}

TEST_F(Blocks, CountersAreWhereAndAsPekkoHasThem) {
  EXPECT_TRUE(layout_->high_counters(kCart, 1, 99).empty());
  EXPECT_TRUE(layout_->high_counters(kCart, 101, 199).empty());
  const auto at = [&](uint64_t first, uint64_t last) {
    return layout_->high_counters(kCart, first, last).at(0);
  };
  const auto row = [](const char* par, int seq) -> item::Item {
    return Row().set("par", par).set("num", 0).set("seq", seq);
  };
  EXPECT_TRUE(item::equal(at(100, 100), row("shop-SH-cart|1-1", 100)));
  EXPECT_TRUE(item::equal(at(90, 350), row("shop-SH-cart|1-3", 300)));
  EXPECT_TRUE(item::equal(at(1201, 1305), row("shop-SH-cart|1-3", 1300)));
  EXPECT_TRUE(item::equal(layout_->low_counters(kCart, 250).at(0), row("shop-SL-cart|1-2", 251)));
  EXPECT_TRUE(item::equal(layout_->low_counters(kCart, 99).at(0), row("shop-SL-cart|1-1", 100)));
  EXPECT_TRUE(item::equal(layout_->low_counters(kCart, 1330).at(0), row("shop-SL-cart|1-3", 1331)));
  EXPECT_FALSE(layout_->marks_deleted());
}

TEST_F(Blocks, PlacesThatAreNoWholeNumbersArePassedOverHoweverMany) {
  const auto place = [](const std::string& text) {
    return item::Value::number(item::parse_number(text).value());
  };
  const std::string large(390 * 1024, 'x');
  for (const auto* between : {"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"})
    put("events", Row().set("par", "shop-P-cart|1-0").set("num", place(between)).set("event", Binary{large}));
  for (const int number : {1, 2})
    put("events", Row().set("par", "shop-P-cart|1-0").set("num", number).set("event", Binary{"x"}));
  for (const auto direction : {Direction::forward, Direction::backward}) {
    std::set<uint64_t> numbers;
    uint64_t from = 1;
    uint64_t to = 50;
    while (true) {
      const auto step = run(layout_->read(engine_, kCart, from, to, direction)).value();
      for (const auto& event : step.events) EXPECT_TRUE(numbers.insert(event.number()).second);
      if (!step.next) break;
      (direction == Direction::forward ? from : to) = *step.next;
    }
    EXPECT_EQ(numbers, (std::set<uint64_t>{1, 2}));
  }
}

class Keys : public testing::Test, protected EngineTest {
 protected:
  Keys() { prepare(layout_->plan()); }
  void put_low(uint64_t number) {
    put("events", Row().set("key", "shop-SL-cart|1-" + std::to_string(number % 4)).set("sequenceNr", number));
  }
  uint64_t deleted_to() { return run(layout_->read_counters(engine_, kCart)).value().deleted_to; }
  std::unique_ptr<Layout> layout_ = make_keys_layout({.table = "events", .sequence_shards = 4});
};

TEST_F(Keys, RowsAreAsTheOlderLayoutHasThem) {
  const item::Item row =
      layout_->row_of(kCart, 312, {.payload = "x"}, {.append_id = "u", .time = time_at(5)});
  const item::Item expected = Row()
                                  .set("key", "shop-P-cart|1-312")
                                  .set("payload", Binary{"x"})
                                  .set("sequenceNr", 312)
                                  .set("deleted", "false")
                                  .set("writer_uuid", "u")
                                  .set("at", 5);
  EXPECT_TRUE(item::equal(row, expected));
  const item::Item high = Row().set("key", "shop-SH-cart|1-2").set("sequenceNr", 10);
  EXPECT_TRUE(item::equal(layout_->high_counters(kCart, 1, 10).at(0), high));
  EXPECT_TRUE(layout_->marks_deleted());
}

TEST_F(Keys, WhatOthersDeletedCountsFromTheFirstOnOnly) {
  put_low(3);
  EXPECT_EQ(deleted_to(), 0u);  // that one alone
  put_low(1);
  EXPECT_EQ(deleted_to(), 1u);
  put_low(2);
  EXPECT_EQ(deleted_to(), 3u);
  for (uint64_t number = 4; number <= 9; ++number) put_low(number);
  EXPECT_EQ(deleted_to(), 9u);  // round all shards, so that 6 to 9 are left
}

TEST_F(Keys, WhatOthersDeleteBehindOursCounts) {
  put("events", layout_->low_counters(kCart, 49).at(0));
  EXPECT_EQ(deleted_to(), 49u);
  put_low(50);
  put_low(51);
  EXPECT_EQ(deleted_to(), 51u);
}

class HeadRows : public testing::Test, protected EngineTest {
 protected:
  HeadRows() { prepare(Heads::plan("heads")); }
  void put_head(const Entity& entity, uint64_t highest) {
    ASSERT_TRUE(run(engine_.update_item(
        store::Update("heads", Heads::key_of(entity)).set(head_attributes::kHighest, highest))));
  }
  std::vector<std::string> list_all(const std::string& journal, size_t limit) {
    std::vector<std::string> pids;
    std::string next;
    do {
      const auto page = run(heads_.list(journal, limit, next)).value();
      EXPECT_LE(page.entities.size(), limit);
      for (const auto& found : page.entities) {
        EXPECT_EQ(found.entity.journal, journal);
        pids.push_back(found.entity.pid);
      }
      next = page.next;
    } while (!next.empty());
    std::ranges::sort(pids);
    return pids;
  }
  const Heads heads_{engine_, "heads"};
};

TEST_F(HeadRows, AreReadAsTheyWereMoved) {
  namespace names = head_attributes;
  EXPECT_FALSE(run(heads_.find(kCart)).value());
  ASSERT_TRUE(run(engine_.update_item(store::Update("heads", Heads::key_of(kCart))
                                          .set(names::kHighest, 9)
                                          .set(names::kDeletedTo, 4)
                                          .set(names::kPurgeTo, 3)
                                          .set(names::kPurgedTo, 2)
                                          .set(names::kEpoch, 5)
                                          .set(names::kExpiringTo, 6)
                                          .set(names::kExpiresAt, 1234)
                                          .set(names::kTime, 999)
                                          .set(names::kTagged, true))));
  auto head = run(heads_.find(kCart)).value();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->highest, 9u);
  EXPECT_EQ(head->deleted_to, 4u);
  EXPECT_EQ(head->purge_to, 3u);
  EXPECT_EQ(head->purged_to, 2u);
  EXPECT_EQ(head->epoch, 5u);
  EXPECT_EQ(head->expiring_to, 6u);
  EXPECT_EQ(head->expires, time_at(1234));
  EXPECT_EQ(head->time, time_at(999));
  EXPECT_TRUE(head->tagged);
  EXPECT_FALSE(head->staging);
  ASSERT_TRUE(run(engine_.update_item(store::Update("heads", Heads::key_of(kCart))
                                          .set(names::kStagedId, "s")
                                          .set(names::kStagedRows, "r")
                                          .set(names::kStagedFirst, 10)
                                          .set(names::kStagedLast, 500)
                                          .set(names::kStagedEpoch, 5)
                                          .set(names::kStagedBeat, "b"))));
  head = run(heads_.find(kCart)).value();
  ASSERT_TRUE(head && head->staging);
  EXPECT_EQ(head->staging->owner, "s");
  EXPECT_EQ(head->staging->append_id, "r");
  EXPECT_EQ(head->staging->first, 10u);
  EXPECT_EQ(head->staging->last, 500u);
  EXPECT_EQ(head->staging->epoch, 5u);
  EXPECT_EQ(head->staging->beat, "b");
}

TEST_F(HeadRows, OfOtherTypesAreEmpty) {
  Row row;
  row.set("id", "shop#cart|1").set("part", "head");
  for (const auto* name : {"highest", "deleted_to", "epoch", "expires_at", "time", "tagged"})
    row.set(name, "text");
  row.set("purged_to", -1).set("staged_id", 5);
  const auto head = Heads::head_of(item::Item(row));
  EXPECT_EQ(head.highest, 0u);
  EXPECT_EQ(head.purged_to, 0u);
  EXPECT_EQ(head.time, time_at(0));
  EXPECT_FALSE(head.expires);
  EXPECT_FALSE(head.tagged);
  EXPECT_FALSE(head.staging);
}

TEST_F(HeadRows, SayWhoseTheyAre) {
  for (const auto* pid : {"a", "#", "a#b", "日本語", "head", "work"}) {
    const Entity entity{.journal = "shop", .pid = pid};
    EXPECT_EQ(Heads::entity_of(Heads::key_of(entity)), entity);
    EXPECT_FALSE(Heads::entity_of(Heads::batch_key(entity, "head")));
    EXPECT_FALSE(Heads::entity_of(Heads::work_key(entity, Heads::Work::stage)));
  }
  for (const auto* id : {"", "#", "#a", "a#", "a"})
    EXPECT_FALSE(Heads::entity_of(item::Item(Row().set("id", id).set("part", "head")))) << id;
  EXPECT_FALSE(Heads::entity_of(item::Item()));
}

TEST_F(HeadRows, ABatchIsFoundByItsId) {
  EXPECT_FALSE(run(heads_.find_batch(kCart, "b")).value());
  put("heads", Heads::batch_row(kCart, "b", {.first = 3, .last = 5}, time_at(1'000)));
  const auto batch = run(heads_.find_batch(kCart, "b")).value();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->first, 3u);
  EXPECT_EQ(batch->last, 5u);
}

TEST_F(HeadRows, EntitiesOfAJournalAreListedPageByPage) {
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    const Entity entity{.journal = "shop", .pid = "cart#" + std::to_string(i)};
    put_head(entity, 1);
    put("heads", Heads::batch_key(entity, "b"));
    put("heads", Heads::work_key(entity, Heads::Work::stage));
    put_head({.journal = "shop2", .pid = entity.pid}, 1);
    put_head({.journal = "other", .pid = "shop#" + entity.pid}, 1);
    expected.push_back(entity.pid);
  }
  std::ranges::sort(expected);
  for (const size_t limit : {1, 2, 7, 24, 25, 26, 1000}) EXPECT_EQ(list_all("shop", limit), expected);
  EXPECT_TRUE(list_all("none", 10).empty());
}

TEST_F(HeadRows, AJournalAmongManyRowsOfOthersIsFoundInTheEnd) {
  std::vector<store::BatchWrite> writes;
  for (int i = 0; i < 12'000; ++i)
    writes.push_back(
        {.put = true, .item = Heads::key_of({.journal = "other", .pid = "p" + std::to_string(i)})});
  ASSERT_TRUE(run(store::write_all(engine_, "heads", std::move(writes))));
  put_head(kCart, 1);
  EXPECT_EQ(list_all("shop", 10), std::vector<std::string>{kCart.pid});
}

TEST_F(HeadRows, ATokenThatIsNoneIsRefused) {
  for (const auto* token : {"no token", "AAAA", "/w==", "////", "Bw==", "A2Ejcf8="}) {
    const auto page = run(heads_.list("shop", 5, token));
    ASSERT_FALSE(page) << token;
    EXPECT_EQ(page.error().code, store::ErrorCode::validation);
    EXPECT_TRUE(page.error().message.contains("begin without one")) << page.error().message;
  }
}

TEST_F(HeadRows, JournalsAndUnfinishedWorkAreListed) {
  for (const auto* name : {"b", "a", "b"}) ASSERT_TRUE(run(heads_.add_journal(name)));
  EXPECT_EQ(run(heads_.journals()).value(), (std::vector<std::string>{"a", "b"}));
  const Entity longest{.journal = std::string(kLongestJournal, 'j'), .pid = std::string(kLongestPid, 'p')};
  put("heads", Heads::work_key(kCart, Heads::Work::stage));
  put("heads", Heads::work_key(kCart, Heads::Work::purge));
  put("heads", Heads::work_key(longest, Heads::Work::stage));
  EXPECT_EQ(run(heads_.unfinished_work()).value(), (std::vector<Entity>{kCart, longest}));
}

class SnapshotRows : public testing::Test, protected EngineTest {
 protected:
  SnapshotRows() { prepare(Snapshots::plan("snapshots")); }
  void save(uint64_t number, std::string payload) {
    const auto saved =
        run(snapshots_.save(kCart, {.number = number, .time = clock_.now(), .payload = std::move(payload)}));
    ASSERT_TRUE(saved) << saved.error().message;
  }
  std::optional<Snapshot> newest(SnapshotRange range = {}) {
    return run(snapshots_.newest(kCart, range)).value();
  }
  std::vector<uint64_t> numbers(SnapshotRange range = {}, size_t limit = 100) {
    std::vector<uint64_t> result;
    for (const auto& snapshot : run(snapshots_.list(kCart, range, limit)).value()) {
      EXPECT_EQ(snapshot.payload, "");
      result.push_back(snapshot.number);
    }
    return result;
  }
  Snapshots snapshots_{engine_, "snapshots"};
};

TEST_F(SnapshotRows, AreReadAsTheyWereSaved) {
  EXPECT_FALSE(newest());
  const std::string payload("\0\xff{", 3);
  ASSERT_TRUE(run(snapshots_.save(kCart, {.number = 5,
                                          .time = time_at(1234),
                                          .payload = payload,
                                          .is_json = true,
                                          .serializer = 17,
                                          .manifest = "m"})));
  const auto found = newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 5u);
  EXPECT_EQ(found->time, time_at(1234));
  EXPECT_EQ(found->payload, payload);
  EXPECT_TRUE(found->is_json);
  EXPECT_EQ(found->serializer, 17);
  EXPECT_EQ(found->manifest, "m");
  EXPECT_FALSE(run(snapshots_.newest({.journal = "shop", .pid = "cart"}, {})).value());
}

TEST_F(SnapshotRows, AreFoundByNumber) {
  for (const uint64_t number : {10, 20, 30}) {
    save(number, std::to_string(number));
    clock_.advance(std::chrono::seconds{1});
  }
  EXPECT_EQ(newest()->payload, "30");
  EXPECT_EQ(newest({.to = 29})->payload, "20");
  EXPECT_EQ(newest({.from = 10, .to = 10})->payload, "10");
  EXPECT_FALSE(newest({.to = 9}));
  EXPECT_FALSE(newest({.from = 31}));
  EXPECT_FALSE(newest({.from = 20, .to = 10}));
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{30, 20, 10}));
  EXPECT_EQ(numbers({}, 2), (std::vector<uint64_t>{30, 20}));
  EXPECT_TRUE(numbers({}, 0).empty());
  EXPECT_EQ(numbers({.from = 11}), (std::vector<uint64_t>{30, 20}));
}

TEST_F(SnapshotRows, AreFoundByTime) {
  const auto start = clock_.now();
  for (const uint64_t number : {10, 20, 30}) {
    save(number, std::to_string(number));
    clock_.advance(std::chrono::seconds{1});
  }
  const auto after = [start](int seconds) { return start + std::chrono::seconds{seconds}; };
  EXPECT_EQ(newest({.not_after = after(1)})->number, 20u);
  EXPECT_EQ(newest({.not_before = after(1)})->number, 30u);
  EXPECT_FALSE(newest({.not_before = after(3)}));
  EXPECT_EQ(numbers({.not_before = after(0), .not_after = after(1)}), (std::vector<uint64_t>{20, 10}));
  EXPECT_EQ(numbers({.not_after = after(1)}, 1), std::vector<uint64_t>{20});
}

// Pekko reads the newest by time.
TEST_F(SnapshotRows, TimesDoNotGoBackWhenClocksDo) {
  save(10, "x");
  const auto first = newest()->time;
  clock_.advance(std::chrono::seconds{-60});
  save(20, "y");
  EXPECT_EQ(newest()->time, first + std::chrono::milliseconds{1});
  save(5, "z");
  EXPECT_EQ(newest({.to = 5})->time, first + std::chrono::milliseconds{2});
  const auto by_time = run(engine_.query(store::Query("snapshots")
                                             .index("ts-idx")
                                             .partition("par", "shop-P-cart|1")
                                             .consistent()
                                             .descending()
                                             .limit(1)))
                           .value();
  ASSERT_EQ(by_time.items.size(), 1u);
  EXPECT_EQ(store::binary_of(by_time.items.front(), "pay_data"), "z");
}

TEST_F(SnapshotRows, OfTheSameNumberAreReplaced) {
  save(10, "x");
  save(10, "y");
  EXPECT_EQ(numbers(), std::vector<uint64_t>{10});
  EXPECT_EQ(newest()->payload, "y");
}

TEST_F(SnapshotRows, AreRemovedByRange) {
  for (uint64_t number = 1; number <= 60; ++number) save(number, "x");
  EXPECT_EQ(run(snapshots_.remove(kCart, {.from = 2, .to = 58})).value(), 57u);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{60, 59, 1}));
  EXPECT_EQ(run(snapshots_.remove(kCart, {.from = 2, .to = 58})).value(), 0u);
  EXPECT_EQ(run(snapshots_.remove(kCart, {})).value(), 3u);
}

TEST_F(SnapshotRows, ThatAreTooLargeAreRefusedAndOthersAreNot) {
  save(1, std::string(400 * 1024 - 200, 'x'));
  const auto saved = run(
      snapshots_.save(kCart, {.number = 2, .time = clock_.now(), .payload = std::string(400 * 1024, 'x')}));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, store::ErrorCode::validation);
  EXPECT_TRUE(saved.error().message.contains("409600")) << saved.error().message;
  EXPECT_EQ(numbers(), std::vector<uint64_t>{1});
}

TEST_F(SnapshotRows, OfTheOldFormAreRead) {
  const std::string wrapped("\x07\0\0\0\x11\0\0\0abcstate", 16);
  put("snapshots",
      Row().set("par", "shop-P-cart|1").set("seq", 3).set("ts", 1000).set("pay", Binary{wrapped}));
  const auto found = newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->payload, "state");
  EXPECT_EQ(found->serializer, 17);
  EXPECT_EQ(found->manifest, "abc");
  const auto listed = run(snapshots_.list(kCart, {}, 10)).value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed.front().serializer, 17);
  EXPECT_EQ(listed.front().manifest, "abc");
}

TEST_F(SnapshotRows, ThatCannotBeReadAreAnErrorUntilTheyAreRemoved) {
  save(1, "good");
  for (const auto& row :
       {Row().set("par", "shop-P-cart|1").set("seq", 3).set("ts", INT64_MAX).set("pay_data", "text"),
        Row()
            .set("par", "shop-P-cart|1")
            .set("seq", 2)
            .set("pay", Binary{"\xff\xff\xff\xff\xff\xff\xff\xff"}),
        Row().set("par", "shop-P-cart|1").set("seq", -5)})
    put("snapshots", row);
  for (const uint64_t number : {3, 2}) {
    const auto found = run(snapshots_.newest(kCart, {}));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, store::ErrorCode::internal);
    EXPECT_TRUE(found.error().message.contains("at number " + std::to_string(number)));
    EXPECT_EQ(run(snapshots_.remove(kCart, {.from = number, .to = number})).value(), 1u);
  }
  EXPECT_EQ(newest()->payload, "good");
}

}  // namespace
}  // namespace tabella::journal

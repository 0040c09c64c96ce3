// Those who read a journal's order by name, those who wait for news of it, and the events of other programs.
#include "journal/consumers.h"

#include <thread>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "journal/adoption.h"
#include "journal/order_fixture.h"
#include "journal/watch.h"

namespace tabella::journal {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using test::run;

class JournalConsumers : public testing::Test, protected OrderFixture {
 protected:
  JournalConsumers() {
    EXPECT_TRUE(run(store::prepare_tables(engine_, {Consumers::plan("consumers")}, store::Missing::create)));
  }

  bool create(const std::string& name, int parts = 1, uint64_t from = 0, const std::string& tag = "") {
    return run(consumers_.create({.journal = "shop", .name = name, .tag = tag, .parts = parts}, from))
        .value();
  }
  std::variant<Delivery, Refused> read(const std::string& holder, size_t limit = 100,
                                       const std::string& name = "mailer") {
    return run(consumers_.read("shop", name, holder, limit, seconds(30))).value();
  }
  Delivery deliver(const std::string& holder, size_t limit = 100, const std::string& name = "mailer") {
    auto read_by = read(holder, limit, name);
    EXPECT_TRUE(std::holds_alternative<Delivery>(read_by));
    return std::holds_alternative<Delivery>(read_by) ? std::get<Delivery>(std::move(read_by)) : Delivery{};
  }
  std::optional<Refused> acknowledge(const Delivery& delivery, uint64_t position, bool keep = false) {
    return run(consumers_.acknowledge("shop", "mailer", delivery.lease, position, keep)).value();
  }
  std::vector<ConsumerPart> parts() {
    return run(consumers_.parts(run(consumers_.find("shop", "mailer")).value().value())).value();
  }
  static std::vector<uint64_t> positions(const Delivery& delivery) {
    std::vector<uint64_t> all;
    for (const auto& placed : delivery.events) all.push_back(placed.position);
    return all;
  }

  Consumers consumers_{engine_, clock_, order_, "consumers"};
};

TEST_F(JournalConsumers, IsMadeOnceListedAndRemoved) {
  EXPECT_TRUE(create("mailer", 4, 0, "paid"));
  EXPECT_FALSE(create("mailer", 2));
  EXPECT_TRUE(create("audit"));
  const auto found = run(consumers_.find("shop", "mailer")).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tag, "paid");
  EXPECT_EQ(found->parts, 4);
  EXPECT_EQ(found->created, clock_.now());
  EXPECT_EQ(parts().size(), 4u);
  std::vector<std::string> names;
  for (const auto& one : run(consumers_.list("shop")).value()) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"audit", "mailer"}));
  EXPECT_TRUE(run(consumers_.list("sho")).value().empty());
  EXPECT_TRUE(run(consumers_.remove("shop", "mailer")).value());
  EXPECT_FALSE(run(consumers_.remove("shop", "mailer")).value());
  EXPECT_FALSE(run(consumers_.find("shop", "mailer")).value());
  EXPECT_EQ(std::get<Refused>(read("worker")), Refused::no_consumer);
  EXPECT_FALSE(run(consumers_.create({.journal = "shop", .name = "x", .parts = 33}, 0)));
  EXPECT_FALSE(run(consumers_.create({.journal = "shop", .name = "x", .parts = 0}, 0)));
  EXPECT_FALSE(run(consumers_.create({.journal = "shop", .name = ""}, 0)));
}

TEST_F(JournalConsumers, WhatIsNotAcknowledgedComesAgain) {
  append("a", 5);
  place(records());
  create("mailer");
  const auto first = deliver("one", 2);
  EXPECT_EQ(positions(first), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(first.position, 2u);
  EXPECT_EQ(first.last, 5u);
  const auto again = deliver("one", 3);
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(again.lease, first.lease);
  EXPECT_FALSE(acknowledge(first, 2));
  EXPECT_FALSE(acknowledge(first, 1));  // behind the checkpoint, which stays
  EXPECT_FALSE(acknowledge(first, 2));
  EXPECT_EQ(parts()[0].checkpoint, 2u);
  EXPECT_EQ(parts()[0].lag, 3u);
  EXPECT_EQ(positions(deliver("one")), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_FALSE(acknowledge(first, 5));
  const auto none = deliver("one");
  EXPECT_TRUE(none.events.empty());
  EXPECT_EQ(none.lease, "");
  EXPECT_FALSE(none.some_held);
}

TEST_F(JournalConsumers, WithoutNewsItSaysWhetherOthersHoldParts) {
  append("a", 2);
  place(records());
  create("mailer", 2);
  const auto first = deliver("one", 1);
  const auto second = deliver("two");
  EXPECT_TRUE(second.events.empty());  // all are of one entity
  EXPECT_TRUE(second.some_held);
  EXPECT_FALSE(acknowledge(first, first.position));
  EXPECT_EQ(positions(deliver("two")), (std::vector<uint64_t>{2}));
}

TEST_F(JournalConsumers, APartIsReadByOneUntilItsLeaseEnds) {
  append("a", 3);
  place(records());
  create("mailer");
  const auto first = deliver("one");
  EXPECT_EQ(parts()[0].holder, "one");
  EXPECT_EQ(parts()[0].until, clock_.now() + seconds(30));
  EXPECT_EQ(std::get<Refused>(read("two")), Refused::all_held);
  clock_.advance(seconds(20));
  deliver("one");  // which makes it longer
  clock_.advance(seconds(20));
  EXPECT_EQ(std::get<Refused>(read("two")), Refused::all_held);
  clock_.advance(seconds(10));
  EXPECT_EQ(parts()[0].holder, "");
  EXPECT_FALSE(acknowledge(first, 1));  // nobody else has it
  const auto second = deliver("two");
  EXPECT_EQ(positions(second), (std::vector<uint64_t>{2, 3}));
  EXPECT_NE(second.lease, first.lease);
  EXPECT_EQ(acknowledge(first, 3), Refused::lease_lost);
  EXPECT_EQ(run(consumers_.release("shop", "mailer", first.lease)).value(), Refused::lease_lost);
  EXPECT_EQ(run(consumers_.release("shop", "mailer", second.lease)).value(), std::nullopt);
  EXPECT_EQ(acknowledge(second, 3), Refused::lease_lost);
  EXPECT_EQ(positions(deliver("three")), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(acknowledge({.lease = "nonsense"}, 1), Refused::lease_lost);
  EXPECT_EQ(run(consumers_.acknowledge("shop", "nobody", second.lease, 1)).value(), Refused::no_consumer);
}

TEST_F(JournalConsumers, SeveralShareThePartsAndEachEventGoesToOneOfThem) {
  for (int i = 0; i < 120; ++i) append(fmt::format("{}-is-an-entity", i % 40), 1);
  place(records());
  create("mailer", 4);
  std::map<uint64_t, std::string> handled;
  std::set<std::string> holders;
  for (bool more = true; more;) {
    more = false;
    for (const auto* holder : {"one", "two", "three"}) {
      const auto read_by = read(holder, 7);
      if (!std::holds_alternative<Delivery>(read_by)) continue;
      const auto& delivery = std::get<Delivery>(read_by);
      for (const auto& placed : delivery.events) {
        EXPECT_TRUE(handled.emplace(placed.position, holder).second) << placed.position;
        EXPECT_EQ(slice_of(placed.pid) / 256, delivery.part);
      }
      if (delivery.events.empty()) continue;
      more = true;
      holders.insert(holder);
      EXPECT_FALSE(acknowledge(delivery, delivery.position));
    }
  }
  EXPECT_EQ(handled.size(), 120u);
  EXPECT_EQ(holders.size(), 3u);
  // Positions of other parts' events do not stay behind the checkpoints for ever.
  for (const auto& part : parts()) EXPECT_EQ(part.lag, 0u);
}

TEST_F(JournalConsumers, ThoseWhoComeLaterGetTheirShare) {
  for (int i = 0; i < 400; ++i) append(fmt::format("{}-is-an-entity", i % 40), 1);
  place(records());
  create("mailer", 4);
  // The first is alone for a while, and has had news of all parts; then each is at work when the next comes.
  std::set<int> had;
  while (had.size() < 4) {
    const auto delivery = deliver("one", 2);
    ASSERT_FALSE(delivery.events.empty());
    had.insert(delivery.part);
    ASSERT_FALSE(acknowledge(delivery, delivery.position));
  }
  std::set<int> at_once;
  for (const auto* holder : {"one", "two", "three"}) {
    const auto delivery = deliver(holder, 2);
    EXPECT_FALSE(delivery.events.empty()) << holder;
    at_once.insert(delivery.part);
  }
  EXPECT_EQ(at_once.size(), 3u);
}

TEST_F(JournalConsumers, AnAcknowledgementOfAllGivesThePartBackUnlessItIsKept) {
  append("a", 6);
  place(records());
  create("mailer");
  const auto first = deliver("one", 2);
  EXPECT_FALSE(acknowledge(first, 1));  // of some
  EXPECT_EQ(parts()[0].holder, "one");
  EXPECT_FALSE(acknowledge(first, 2, true));
  EXPECT_EQ(parts()[0].holder, "one");
  EXPECT_EQ(std::get<Refused>(read("two")), Refused::all_held);
  EXPECT_FALSE(acknowledge(first, 2));
  EXPECT_EQ(parts()[0].holder, "");
  EXPECT_FALSE(acknowledge(first, 2));  // whose answer was lost
  EXPECT_EQ(run(consumers_.release("shop", "mailer", first.lease)).value(), std::nullopt);
  const auto second = deliver("two", 2);
  EXPECT_EQ(positions(second), (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(acknowledge(first, 2), Refused::lease_lost);
  // The same holder has another lease once it has given the first back.
  EXPECT_FALSE(acknowledge(second, 4));
  EXPECT_NE(deliver("two").lease, second.lease);
}

TEST_F(JournalConsumers, NoMoreIsAcknowledgedThanWasHandedOut) {
  append("a", 9);
  place(records());
  create("mailer");
  const auto first = deliver("one", 4);
  EXPECT_EQ(acknowledge(first, 5), Refused::beyond);
  EXPECT_EQ(acknowledge(first, 9, true), Refused::beyond);
  EXPECT_EQ(acknowledge(first, UINT64_MAX), Refused::beyond);
  EXPECT_EQ(parts()[0].checkpoint, 0u);
  deliver("one", 2);  // which does not take back that four were handed out
  EXPECT_FALSE(acknowledge(first, 3));
  EXPECT_FALSE(acknowledge(first, 4));
  EXPECT_EQ(acknowledge(first, 5), Refused::beyond);  // after it was given back
  EXPECT_EQ(parts()[0].checkpoint, 4u);
  clock_.advance(minutes(1));
  const auto second = deliver("two", 1);  // and to another it counts from the beginning
  EXPECT_EQ(acknowledge(second, 6), Refused::beyond);
  EXPECT_FALSE(acknowledge(second, 5));
}

TEST_F(JournalConsumers, HoldersThatRaceForAPartDoNotBothHaveIt) {
  append("a", 1);
  place(records());
  create("mailer");
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> had{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        const auto result =
            run(consumers_.read("shop", "mailer", fmt::format("{}-{}", round, i), 10, seconds(30)));
        const auto* delivery = std::get_if<Delivery>(&result.value());
        if (delivery && !delivery->events.empty()) ++had;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(had, 1);
    clock_.advance(seconds(31));
  }
}

TEST_F(JournalConsumers, OfATagOnlyItsEventsCome) {
  append("a", 6, [](uint64_t number) {
    return number % 3 == 0 ? std::vector<std::string>{"third"} : std::vector<std::string>();
  });
  place(records());
  create("mailer", 1, 0, "third");
  const auto delivery = deliver("one");
  EXPECT_EQ(positions(delivery), (std::vector<uint64_t>{3, 6}));
  EXPECT_FALSE(acknowledge(delivery, delivery.position));
  append("a", 5);
  place(records());
  EXPECT_TRUE(deliver("one").events.empty());
  EXPECT_EQ(parts()[0].lag, 0u);
}

TEST_F(JournalConsumers, BeginsWhereItIsToldAndCanBeMoved) {
  append("a", 5);
  place(records());
  create("mailer", 1, 3);
  create("end", 1, UINT64_MAX);
  EXPECT_TRUE(deliver("one", 100, "end").events.empty());
  const auto delivery = deliver("one");
  EXPECT_EQ(positions(delivery), (std::vector<uint64_t>{4, 5}));
  EXPECT_TRUE(run(consumers_.move_to("shop", "mailer", 1)).value());
  EXPECT_EQ(acknowledge(delivery, 5), Refused::lease_lost);
  EXPECT_EQ(positions(deliver("two")), (std::vector<uint64_t>{2, 3, 4, 5}));
  EXPECT_TRUE(run(consumers_.move_to("shop", "mailer", UINT64_MAX)).value());
  EXPECT_EQ(parts()[0].checkpoint, 5u);
  EXPECT_FALSE(run(consumers_.move_to("shop", "nobody", 1)).value());
}

class JournalWatch : public testing::Test, protected OrderFixture {
 protected:
  // Does something once the wait has begun; it ends because of that, or the test hangs.
  template <class Then>
  static void wait(boost::asio::awaitable<void> waiting, Then then) {
    boost::asio::io_context context;
    bool over = false;
    boost::asio::co_spawn(context, std::move(waiting), [&](const std::exception_ptr&) { over = true; });
    context.poll();
    EXPECT_FALSE(over);
    std::thread other(then);
    context.run();
    other.join();
    EXPECT_TRUE(over);
  }
  static void expect_at_once(boost::asio::awaitable<void> waiting) {
    boost::asio::io_context context;
    bool over = false;
    boost::asio::co_spawn(context, std::move(waiting), [&](const std::exception_ptr&) { over = true; });
    context.poll();
    EXPECT_TRUE(over);
  }

  const Entity a_{.journal = "shop", .pid = "a"};
  Watch watch_{order_, false};
};

TEST_F(JournalWatch, ThoseWhoWaitAreWokenByWhatTheyWaitFor) {
  wait(watch_.wait_for_position("shop", 0, minutes(30)), [&] { watch_.placed("shop", 1); });
  wait(watch_.wait_for_position("shop", 1, minutes(30)), [&] {
    watch_.placed("other", 9);
    watch_.placed("shop", 1);
    watch_.placed("shop", 2);
  });
  wait(watch_.wait_for_event(a_, 3, minutes(30)), [&] {
    watch_.appended({.journal = "shop", .pid = "b"}, 9);
    watch_.appended(a_, 3);
    watch_.appended(a_, 4);
  });
  wait(watch_.wait_for_event(a_, 4, minutes(30)), [&] { watch_.stop(); });
  expect_at_once(watch_.wait_for_position("shop", 99, minutes(30)));
}

TEST_F(JournalWatch, NewsFromBeforeTheWaitAreNotMissed) {
  watch_.appended(a_, 5);
  watch_.placed("shop", 7);
  expect_at_once(watch_.wait_for_event(a_, 4, minutes(30)));
  expect_at_once(watch_.wait_for_position("shop", 6, minutes(30)));
  boost::asio::io_context context;
  boost::asio::co_spawn(context, watch_.wait_for_position("shop", 7, std::chrono::milliseconds(1)),
                        [](const std::exception_ptr&) {});
  context.run();  // and ends by itself
}

TEST_F(JournalWatch, WhatOtherProcessesAppendIsFoundInTheStore) {
  Watch shared(order_, true);
  boost::asio::io_context context;
  boost::asio::co_spawn(context, shared.run(), [](const std::exception_ptr&) {});
  std::thread looking([&] { context.run(); });
  append("a", 2);
  place(records());
  wait(shared.wait_for_event(a_, 2, minutes(30)), [&] {
    append("b", 1);
    append("a", 1);
    place(records());
  });
  wait(shared.wait_for_position("shop", 4, minutes(30)), [&] {
    append("b", 1);
    place(records());
  });
  shared.stop();
  looking.join();
}

class JournalAdoption : public testing::Test, protected OrderFixture {
 protected:
  // As Pekko does it.
  void put_event(const std::string& pid, uint64_t number) {
    item::Item row = store::Row()
                         .set("par", fmt::format("shop-P-{}-{}", pid, number / 100))
                         .set("num", number % 100)
                         .set("persistence_id", pid)
                         .set("seq", number)
                         .set("event", store::Binary{"x"})
                         .set("ev_ser_id", 4)
                         .set("writer_uuid", "another-program");
    ASSERT_TRUE(run(engine_.put_item(store::Put("events", std::move(row)))));
  }
  bool adopt() {
    const auto all = records("events");
    boost::asio::io_context context;
    bool well = false;
    boost::asio::co_spawn(context, adoption_.handle("shard", all),
                          [&](const std::exception_ptr& failure) { well = !failure; });
    context.run();
    return well;
  }

  std::map<std::string, uint64_t> told_;
  Adoption adoption_{engine_, journal_, [this](const Entity& entity, uint64_t highest) {
                       EXPECT_EQ(entity.journal, "shop");
                       told_[entity.pid] = highest;
                     }};
};

TEST_F(JournalAdoption, EventsOfOtherProgramsGetAHeadAndPositions) {
  append("ours", 3);
  put_event("theirs", 1);
  put_event("theirs", 2);
  put_event("ours", 4);
  ASSERT_TRUE(adopt());
  EXPECT_EQ(told_, (std::map<std::string, uint64_t>{{"ours", 4}, {"theirs", 2}}));
  EXPECT_EQ(adoption_.count(), 2u);
  ASSERT_TRUE(adopt());
  EXPECT_EQ(adoption_.count(), 2u);
  place(records());
  highest_ = {{"ours", 4}, {"theirs", 2}};
  expect_each_once();
}

TEST_F(JournalAdoption, WhatThisProcessAppendsIsNotLookedAt) {
  put_event("ours", 1);
  adoption_.appended({.journal = "shop", .pid = "ours"}, 1);
  ASSERT_TRUE(adopt());
  EXPECT_TRUE(told_.empty());
  put_event("ours", 2);
  ASSERT_TRUE(adopt());
  EXPECT_EQ(told_, (std::map<std::string, uint64_t>{{"ours", 2}}));
}

TEST_F(JournalAdoption, ARowOfOursWithoutItsHeadIsNoNews) {
  append("ours", 1);
  ASSERT_TRUE(run(engine_.put_item(
      store::Put("events", layout_->row_of({.journal = "shop", .pid = "ours"}, 2, {.payload = "left behind"},
                                           {.append_id = "append", .time = clock_.now()})))));
  ASSERT_TRUE(adopt());
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(adoption_.count(), 0u);
}

TEST_F(JournalAdoption, RowsThatAreBeingStagedAreLeftAlone) {
  append("ours", 1);
  ASSERT_TRUE(
      run(engine_.update_item(store::Update("heads", Heads::key_of({.journal = "shop", .pid = "ours"}))
                                  .set(head_attributes::kStagedId, "append")
                                  .set(head_attributes::kStagedFirst, 2)
                                  .set(head_attributes::kStagedLast, 200))));
  put_event("ours", 2);
  put_event("ours", 3);
  ASSERT_TRUE(adopt());
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace tabella::journal

// The nine queries of the source's table, each one Query on one partition, and what opening, listing and
// ending cost (an attempt: searches_test.cpp); docs/manhunt.md, "The table", has the same numbers. And that
// what comes twice is done once.
#include "manhunt/manhunt_fixture.h"

namespace tabella::manhunt {
namespace {

constexpr std::pair kOneRead{1, 0};

TEST_F(ManhuntFixture, TheNineQueriesAreOneRequestEach) {
  for (int i = 0; i < 30; ++i) {
    open();
    clock_.advance(std::chrono::seconds(1));
  }
  const auto last = open();
  const auto noon = clock_.now() - std::chrono::seconds(10);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(searches_.find(last.id)).value()); }), kOneRead);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(searches_.find_full(last.id)).value()); }), kOneRead);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(contacts_.find("shop", "cann")).value()); }), kOneRead);
  EXPECT_EQ(
      requests_of([&] { EXPECT_EQ(run(contacts_.find_full("shop", "cann")).value()->methods.size(), 3u); }),
      kOneRead);
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(contacts_.list("shop", 10, "")).value().contacts.size(), 1u); }),
            kOneRead);
  const auto listed = [&](std::optional<Status> status, std::optional<TimePoint> before,
                          std::optional<TimePoint> after) {
    size_t count = 0;
    EXPECT_EQ(requests_of([&] {
                count =
                    run(searches_.list({.list = "cann", .status = status, .before = before, .after = after}))
                        .value()
                        .searches.size();
              }),
              kOneRead);
    return count;
  };
  EXPECT_EQ(listed({}, {}, {}), 31u);
  EXPECT_EQ(listed({}, noon, {}), 20u);
  EXPECT_EQ(listed({}, {}, noon), 10u);
  EXPECT_EQ(listed(Status::active, {}, {}), 31u);
  EXPECT_EQ(listed(Status::active, noon, {}), 20u);
  EXPECT_EQ(listed(Status::failed, {}, {}), 0u);
}

TEST_F(ManhuntFixture, AnEntityIsNotReadAsAnother) {
  const auto search = open();
  EXPECT_FALSE(run(searches_.find("cann")).value());
  EXPECT_FALSE(run(searches_.find_full("cann")).value());
  EXPECT_FALSE(run(contacts_.find("shop", search.id)).value());
  EXPECT_FALSE(run(contacts_.find_full("shop", search.id)).value());
  EXPECT_FALSE(run(contacts_.find("other", "cann")).value()) << "of another domain";
}

TEST_F(ManhuntFixture, OpeningIsOneWriteAndEndingIsOne) {
  run(domains_.find("shop")).value();
  EXPECT_EQ(requests_of([&] { open(); }), std::pair(1, 1));
  const auto search = open();
  EXPECT_EQ(requests_of([&] {
              EXPECT_TRUE(run(searches_.end(search.id, Status::canceled, {.how = "canceled"})).value()->won);
            }),
            std::pair(1, 1));
  EXPECT_FALSE(run(searches_.answer(search.id, {.how = "api"})).value()->won) << "it has ended";
  EXPECT_EQ(run(searches_.find(search.id)).value()->status, Status::canceled);
}

TEST_F(ManhuntFixture, OpeningByAKeyIsAReadOrTwoMore) {
  run(domains_.find("shop")).value();
  const OpenRequest request{.domain = "shop", .contact = "cann", .key = "disk"};
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(searches_.open(request)).value().fresh); }), std::pair(2, 1));
  EXPECT_EQ(requests_of([&] { EXPECT_FALSE(run(searches_.open(request)).value().fresh); }), std::pair(2, 0));
}

TEST_F(ManhuntFixture, OpeningByAPolicyIsAReadForEachContactOfItsFirstStep) {
  FullContact bob{.contact = {.id = "cbob", .domain = "shop", .name = "Bob"}};
  EXPECT_TRUE(run(contacts_.create(bob)));
  Policy policy;
  policy.steps.push_back(
      {.targets = {{.contact = "cann"}, {.contact = "cbob"}}, .wait = std::chrono::minutes(5)});
  policy.steps.push_back({.targets = {{.contact = "cann"}}, .wait = std::chrono::minutes(5)});
  EXPECT_TRUE(run(domains_.put_policy("shop", "all", policy)));
  run(domains_.find("shop")).value();
  EXPECT_EQ(requests_of([&] { run(searches_.open({.domain = "shop", .policy = "all"})).value(); }),
            std::pair(2, 1));
}

TEST_F(ManhuntFixture, AListOfADomainIsAQueryAndAReadForEachTwentyFive) {
  for (int i = 0; i < 30; ++i) open();
  EXPECT_EQ(requests_of([&] {
              EXPECT_EQ(run(searches_.list({.list = domain_list("shop")})).value().searches.size(), 30u);
            }),
            std::pair(3, 0));
}

TEST_F(ManhuntFixture, RecordsThatComeTwiceStartASearchOfAnotherProgramOnce) {
  const auto search = written_by_another();
  handle(search);
  const auto before = run(searches_.find_full(search.id)).value();
  clock_.advance(std::chrono::seconds(5));
  handle(search);
  const auto after = run(searches_.find_full(search.id)).value();
  ASSERT_EQ(after->steps.size(), 1u);
  EXPECT_EQ(after->steps[0].started, before->steps[0].started);
  EXPECT_EQ(after->steps[0].tracks.size(), 1u);
}

TEST_F(ManhuntFixture, RowsOfOtherProgramsThatSayTooLittleFail) {
  const auto put = [&](store::Row row) {
    row.set(kSort, kSearchSort).set("entityType", "search").set("status", "active").set("domain", "shop");
    EXPECT_TRUE(run(engine_.put_item(store::Put("manhunt", row))));
  };
  const auto first = make_id('s'), second = make_id('s');
  put(store::Row().set(kPartition, first).set("repeat", 1'000'000'000).set("steps", "[]"));
  handle(*run(searches_.find(first)).value());
  EXPECT_EQ(run(searches_.find(first)).value()->status, Status::failed);
  put(store::Row().set(kPartition, second).set("contact", "cann").set("repeat", -1).set("steps", "{"));
  handle(*run(searches_.find(second)).value());
  EXPECT_EQ(run(searches_.find_full(second)).value()->steps.size(), 1u) << "its contact is asked, as usual";
}

TEST_F(ManhuntFixture, ARecordOfASearchThatHasEndedStartsNothing) {
  const auto search = written_by_another();
  run(searches_.end(search.id, Status::canceled, {.how = "canceled"})).value();
  handle(search);
  EXPECT_TRUE(run(searches_.find_full(search.id)).value()->steps.empty());
}

}  // namespace
}  // namespace tabella::manhunt

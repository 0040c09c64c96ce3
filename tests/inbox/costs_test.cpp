// What each call costs in requests to the store: docs/inbox.md, "Counts", has the same numbers.
#include "inbox/inbox_fixture.h"

namespace tabella::inbox {
namespace {

class InboxCosts : public InboxFixture {
 protected:
  InboxCosts() {
    EXPECT_TRUE(run(boxes_.counts(kAnn)));  // comes for the first time
    for (int i = 0; i < 300; ++i) {
      publish({"ann"});
      publish({});
    }
    EXPECT_TRUE(run(boxes_.counts(kAnn)));
  }

  // How many requests the call makes.
  template <class Call>
  int requests_of(Call call) {
    int requests = 0;
    store_.decide([&](test::FaultyStore::Call) {
      ++requests;
      return test::Fault::none;
    });
    call();
    store_.decide({});
    return requests;
  }
};

TEST_F(InboxCosts, PublishingIsOneRequest) {
  EXPECT_EQ(requests_of([&] { publish({"ann"}); }), 1);
  EXPECT_EQ(requests_of([&] { publish({"ann", "bob", "cy"}); }), 1);
  EXPECT_EQ(requests_of([&] { publish({}); }), 1);
  auto named = publication({"ann"});
  named.key = "once";
  named.fingerprint = "of this";
  named.content.group = "orders";
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(posts_.publish(named))); }), 1);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(posts_.publish(named))->repeated); }), 3)
      << "its key, its post";
}

TEST_F(InboxCosts, WhatIsForManyOrForLaterIsWrittenDownInFew) {
  std::vector<std::string> many;
  for (int i = 0; i < 12'501; ++i) many.push_back(fmt::format("user-{}", i));
  EXPECT_EQ(requests_of([&] { publish(many); }), 3);
  many.pop_back();
  EXPECT_EQ(requests_of([&] { publish(many); }), 2);
  auto later = publication({"ann"});
  later.deliver_at = clock_.now() + std::chrono::hours(1);
  std::string id;
  EXPECT_EQ(requests_of([&] { id = run(posts_.publish(later))->post.id; }), 1);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(posts_.find(kShop, id))->has_value()); }), 1);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(posts_.cancel(kShop, id))->has_value()); }), 2);
}

TEST_F(InboxCosts, RedactingIsAFewForEachUser) {
  const auto id = publish({"ann", "bob"});
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(*run(posts_.redact(kShop, id, {"bob"}))); }), 5);
  const auto of_one = publish({"ann"}), of_three = publish({"ann", "bob", "cy"}), of_all = publish({});
  EXPECT_TRUE(run(boxes_.counts(kAnn)));  // so that the list of broadcasts is known
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(*run(posts_.redact(kShop, of_one, {}))); }), 2 + 4);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(*run(posts_.redact(kShop, of_three, {}))); }), 2 + 3 * 4);
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(*run(posts_.redact(kShop, of_all, {}))); }), 4);
}

TEST_F(InboxCosts, APageOfTheFeedIsThreeHoweverManyMessagesThereAre) {
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(boxes_.feed(kAnn, {.limit = 20}))->entries.size(), 20); }), 3);
}

TEST_F(InboxCosts, APageThatIsKnownIsTwo) {
  const auto page = run(boxes_.feed(kAnn, {.limit = 20})).value();
  const FeedRequest again{.limit = 20, .known = KnownPage{.sequence = page.sequence, .until = page.until}};
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.feed(kAnn, again))->is_known); }), 2);
  publish({"ann"});
  EXPECT_EQ(requests_of([&] { EXPECT_FALSE(run(boxes_.feed(kAnn, again))->is_known); }), 3);
}

TEST_F(InboxCosts, CountsAreThreeHoweverManyMessagesThereAre) {
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(boxes_.counts(kAnn))->tallies[kAll].unread, 600); }), 3);
}

TEST_F(InboxCosts, MarkingAllIsThreeOfWhichOneWrites) {
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.mark_read(kAnn, {}))); }), 3);
  EXPECT_EQ(run(boxes_.counts(kAnn))->tallies[kAll].unread, 0);
}

TEST_F(InboxCosts, ReadingMessagesIsFour) {
  const std::vector<std::string> ids{publish({"ann"}), publish({})};
  EXPECT_TRUE(run(boxes_.counts(kAnn)));
  EXPECT_EQ(requests_of([&] {
              EXPECT_TRUE(run(boxes_.change(kAnn, ids, [](State& state, int64_t) { state.read_at = 1; })));
            }),
            4);
}

TEST_F(InboxCosts, MarkingSeenIsThree) {
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.mark_seen(kAnn))); }), 3);
}

TEST_F(InboxCosts, MarkingUpToATimeIsThreeAndReadsWhatIsThere) {
  const auto until = clock_.now();
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.mark_read_until(kAnn, until))); }), 3);
}

TEST_F(InboxCosts, PreferencesAreOneToReadAndThreeToSet) {
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.wishes(kAnn))); }), 1);
  const WishChanges changes{{"news", {{Channel::bell, false}}}};
  EXPECT_EQ(requests_of([&] { EXPECT_TRUE(run(boxes_.set_wishes(kAnn, changes))); }), 3);
}

TEST_F(InboxCosts, WhatAnOpenPageIsToldOfIsFour) {
  const auto sequence = run(boxes_.sequence_of(kAnn)).value();
  publish({"ann"});
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(boxes_.changes(kAnn, sequence, false))->entries.size(), 1u); }),
            4);
}

}  // namespace
}  // namespace tabella::inbox

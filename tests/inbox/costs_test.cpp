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

}  // namespace
}  // namespace tabella::inbox

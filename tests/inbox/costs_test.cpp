// What each call costs in requests to the store: docs/inbox.md, "Counts", has the same numbers.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "inbox/boxes.h"
#include "inbox/posts.h"
#include "journal/faulty_store.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::inbox {
namespace {

using test::run;

const Place kShop{.tenant = "shop", .inbox = "bell"};
const Box kAnn{.place = kShop, .user = "ann"};

class InboxCosts : public testing::Test {
 protected:
  InboxCosts() {
    EXPECT_TRUE(run(store::prepare_tables(engine_, {plan_inbox_table("inbox"), schedule::plan("timers")},
                                          store::Missing::create)));
    EXPECT_TRUE(run(boxes_.counts(kAnn)));  // comes for the first time
    for (int i = 0; i < 300; ++i) {
      publish({"ann"});
      publish({});
    }
    EXPECT_TRUE(run(boxes_.counts(kAnn)));
  }

  std::string publish(std::vector<std::string> users) {
    Publication publication{.place = kShop, .users = std::move(users)};
    publication.content = {.category = "news", .everyone = publication.users.empty()};
    publication.content.message = item::encode(item::Value::map());
    publication.time_to_live = std::chrono::hours(1);
    return run(posts_.publish(std::move(publication))).value().post.id;
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

  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path()}, clock_};
  test::FaultyStore store_{engine_};
  Sequence sequence_{clock_};
  Broadcasts broadcasts_{store_, clock_, "inbox"};
  Boxes boxes_{store_, clock_, broadcasts_, sequence_, "inbox"};
  schedule::Schedule schedule_{engine_, clock_, {.table = "timers"}};
  Settings settings_{store_, clock_, "inbox"};
  Digests digests_{store_, clock_, settings_, schedule_, "inbox"};
  Posts posts_{{.store = store_,
                .clock = clock_,
                .boxes = boxes_,
                .sequence = sequence_,
                .schedule = schedule_,
                .digests = digests_},
               "inbox",
               [](const std::string&) {}};
};

TEST_F(InboxCosts, PublishingIsOneRequest) {
  EXPECT_EQ(requests_of([&] { publish({"ann"}); }), 1);
  EXPECT_EQ(requests_of([&] { publish({"ann", "bob", "cy"}); }), 1);
  EXPECT_EQ(requests_of([&] { publish({}); }), 1);
}

TEST_F(InboxCosts, APageOfTheFeedIsThreeHoweverManyMessagesThereAre) {
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(boxes_.feed(kAnn, {.limit = 20}))->entries.size(), 20); }), 3);
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

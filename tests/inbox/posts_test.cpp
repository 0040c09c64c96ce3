// What becomes of posts when something goes wrong in the middle.
#include <fmt/format.h>

#include "inbox/arrival.h"
#include "inbox/inbox_fixture.h"

namespace tabella::inbox {
namespace {

using std::chrono::seconds;
using test::Fault;

class InboxPosts : public InboxFixture {
 protected:
  Publication gathered(std::string title) {
    auto made = publication({"ann"}, std::move(title));
    made.gathered_for = seconds(60);
    return made;
  }
  std::string window() {
    const auto end = epoch_milliseconds(Digests::end_of_window(clock_.now(), seconds(60)));
    return fmt::format("shop#bell#ann#news#{}#0", end);
  }
  bool carry_on(const std::string& id) { return fire(posts_, &Posts::carry_on, "shop#bell#" + id); }
  bool publish_digest(const std::string& payload) { return fire(digests_, &Digests::carry_out, payload); }
};

TEST_F(InboxPosts, AMessageIsInOneDigestThoughItsDeliveryIsRepeated) {
  const auto digest = window();
  const auto id = run(posts_.publish(gathered("one")))->post.id;
  // Killed when it has gathered, and before it is noted that it has.
  store_.decide([](test::FaultyStore::Call call) {
    return call.writes && call.number == 1 ? Fault::die : Fault::none;
  });
  EXPECT_FALSE(carry_on(id));
  store_.decide({});
  clock_.advance(seconds(120));
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_EQ(titles(kAnn), std::vector<std::string>{"one"});
  EXPECT_TRUE(carry_on(id));
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_EQ(titles(kAnn), std::vector<std::string>{"one"});
}

TEST_F(InboxPosts, WhatComesBehindTheEndOfItsWindowIsAnotherDigest) {
  const auto digest = window();
  const auto first = run(posts_.publish(gathered("one")))->post.id;
  const auto late = run(posts_.publish(gathered("two")))->post.id;
  EXPECT_TRUE(carry_on(first));
  clock_.advance(seconds(120));
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_TRUE(carry_on(late));
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_EQ(titles(kAnn).size(), 2u);
  EXPECT_TRUE(run(posts_.redact(kShop, late, {})));
  EXPECT_EQ(titles(kAnn), std::vector<std::string>{"one"});
}

TEST_F(InboxPosts, ADigestThatIsPublishedTwiceIsThereOnce) {
  const auto digest = window();
  for (const auto* title : {"one", "two", "three"})
    EXPECT_TRUE(carry_on(run(posts_.publish(gathered(title)))->post.id));
  clock_.advance(seconds(60));
  // The answer to its publication is lost.
  store_.decide([](test::FaultyStore::Call call) { return call.writes ? Fault::lose_answer : Fault::none; });
  static_cast<void>(publish_digest(digest));
  store_.decide({});
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_EQ(titles(kAnn), std::vector<std::string>{"3 new: news"});
  EXPECT_EQ(run(boxes_.counts(kAnn))->tallies[kAll].unread, 1);
}

TEST_F(InboxPosts, NobodyWaitsForABoxThatIsFull) {
  EXPECT_TRUE(run(boxes_.counts(kAnn)));
  // As large as a row may be.
  const std::string filler(399'000, 'x');
  EXPECT_TRUE(run(engine_.update_item(store::Update("inbox", stats_key(kAnn, kAll)).set("filler", filler))));
  EXPECT_TRUE(run(posts_.publish(publication({"ann", "bob"}))));
  EXPECT_EQ(titles({.place = kShop, .user = "bob"}).size(), 1u);
  auto many = publication({});
  many.content.everyone = false;
  for (int i = 0; i < 40; ++i) many.users.push_back(fmt::format("user{}", i));
  many.users.emplace_back("ann");
  const auto id = run(posts_.publish(many))->post.id;
  EXPECT_TRUE(carry_on(id));
  EXPECT_EQ(titles({.place = kShop, .user = "user39"}).size(), 1u);
  EXPECT_EQ(run(posts_.find(kShop, id)).value()->state, PostState::done);
}

TEST_F(InboxPosts, WhatWasToComeInThePastComesNow) {
  auto past = publication({"ann"});
  past.deliver_at = clock_.now() - std::chrono::hours(5);
  EXPECT_TRUE(run(posts_.publish(past)));
  EXPECT_EQ(titles(kAnn).size(), 1u);
}

TEST_F(InboxPosts, AGroupIsTakenAwayAHandfulAtATimeAndAllOfIt) {
  for (int i = 0; i < 30; ++i) {
    auto one = publication({"ann"});
    one.content.group = "order-1";
    EXPECT_TRUE(run(posts_.publish(one)));
  }
  const auto ids = run(posts_.select(kShop, {.group = "order-1"})).value();
  EXPECT_EQ(ids.size(), 30u);
  for (const auto& id : ids) {
    EXPECT_TRUE(run(posts_.redact(kShop, id, {}, true)));
    EXPECT_TRUE(carry_on(id));
  }
  EXPECT_TRUE(titles(kAnn).empty());
  EXPECT_TRUE(run(posts_.select(kShop, {.group = "order-1"}))->empty());
}

TEST_F(InboxPosts, WhatIsStillToComeOfAGroupIsTakenAwayFirst) {
  auto one = publication({"ann"});
  one.content.group = "order-1";
  const auto published = run(posts_.publish(one))->post.id;
  one.deliver_at = clock_.now() + std::chrono::minutes(30);
  const auto scheduled = run(posts_.publish(one))->post.id;
  EXPECT_EQ(run(posts_.select(kShop, {.group = "order-1"})).value(),
            (std::vector<std::string>{scheduled, published}));
}

TEST_F(InboxPosts, AKeyIsFreeOnceItsMessageHasExpired) {
  auto once = publication({"ann"}, "once");
  once.key = once.fingerprint = "k1";
  once.content.expires = epoch_milliseconds(clock_.now()) / 1000 + 60;
  auto other = once;
  other.fingerprint = "another";
  EXPECT_TRUE(run(posts_.publish(once)));
  EXPECT_TRUE(run(posts_.publish(once))->repeated);
  EXPECT_FALSE(run(posts_.publish(other)));
  clock_.advance(std::chrono::hours(2));
  EXPECT_FALSE(run(posts_.publish(other))->repeated);
}

TEST_F(InboxPosts, AKeyIsFreeOnceItsPostIsCanceled) {
  auto later = publication({"ann"});
  later.key = later.fingerprint = "k1";
  later.deliver_at = clock_.now() + std::chrono::minutes(30);
  const auto first = run(posts_.publish(later))->post.id;
  EXPECT_EQ(run(posts_.cancel(kShop, first)).value()->state, PostState::canceled);
  const auto again = run(posts_.publish(later)).value();
  EXPECT_FALSE(again.repeated);
  EXPECT_NE(again.post.id, first);
}

TEST_F(InboxPosts, TheCountersOfBroadcastsForgetThoseThatHaveExpired) {
  const auto broadcasts = public_box(kShop);
  const auto published = [&](std::string_view category) {
    return store::number_of(
        *run(engine_.get_item({.table = "inbox", .key = stats_key(broadcasts, category)}))->item,
        "published");
  };
  publish({});
  clock_.advance(std::chrono::minutes(30));
  publish({});
  EXPECT_EQ(published(kAll), 2);
  clock_.advance(std::chrono::minutes(31));
  EXPECT_TRUE(fire(posts_, &Posts::retire, "shop#bell"));
  EXPECT_EQ(published(kAll), 1);
  EXPECT_EQ(published("news"), 1);
}

TEST_F(InboxPosts, WhatWasBegunToBeCanceledIsCanceledByWhoeverAsksAgain) {
  auto later = publication({"ann"});
  later.key = later.fingerprint = "k1";
  later.content.group = "g";
  later.deliver_at = clock_.now() + std::chrono::minutes(30);
  const auto id = run(posts_.publish(later))->post.id;
  // Killed before the key is freed.
  store_.decide(
      [](test::FaultyStore::Call call) { return call.writes && call.number > 0 ? Fault::die : Fault::none; });
  EXPECT_FALSE(run(posts_.cancel(kShop, id)));
  store_.decide({});
  EXPECT_TRUE(run(posts_.cancel(kShop, id)));
  EXPECT_TRUE(run(posts_.select(kShop, {.group = "g"}))->empty());
  EXPECT_FALSE(run(posts_.publish(later))->repeated);
}

TEST_F(InboxPosts, WhatIsPublishedTwiceUnderAKeyLeavesNoTimers) {
  auto once = publication({"ann"});
  once.key = once.fingerprint = "k1";
  once.content.expires = epoch_milliseconds(clock_.now()) / 1000 + 60;
  once.channels = {{.channel = Channel::webhook, .after = seconds(60), .wanted = true}};
  EXPECT_TRUE(run(posts_.publish(once)));
  int writes = 0;
  store_.decide([&](test::FaultyStore::Call call) {
    writes += call.writes;
    return Fault::none;
  });
  EXPECT_TRUE(run(posts_.publish(once))->repeated);
  EXPECT_EQ(writes, 0);
}

TEST_F(InboxPosts, BroadcastsOfAnInboxAreLimited) {
  publish({});
  EXPECT_TRUE(run(engine_.update_item(
      store::Update("inbox", stats_key(public_box(kShop), kAll)).set("published", kMostBroadcasts))));
  const auto refused = run(posts_.publish(publication({})));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, store::ErrorCode::validation);
  EXPECT_TRUE(run(posts_.publish(publication({"ann"}))));
}

TEST_F(InboxPosts, WhatHasExpiredMeanwhileIsInNoDigest) {
  auto brief = gathered("brief");
  brief.time_to_live = seconds(20);
  const auto digest = window();
  for (const auto& one : {brief, gathered("one"), gathered("two")})
    EXPECT_TRUE(carry_on(run(posts_.publish(one))->post.id));
  clock_.advance(seconds(60));
  EXPECT_TRUE(publish_digest(digest));
  EXPECT_EQ(titles(kAnn), std::vector<std::string>{"2 new: news"});
}

TEST_F(InboxPosts, WhoeverHasNotHadAMessageIsNotToldThatItWasTakenAway) {
  const auto id = run(posts_.publish(publication({"ann"})))->post.id;
  EXPECT_FALSE(run(posts_.redact(kShop, id, {"bob"})).value());
  EXPECT_TRUE(run(posts_.redact(kShop, id, {"bob", "ann"})).value());
}

TEST_F(InboxPosts, BroadcastsSayWhatTheySayAlsoWhereThatIsNotKept) {
  Broadcasts cold(engine_, clock_, "inbox");
  Boxes others(engine_, clock_, cold, sequence_, "inbox");
  EXPECT_TRUE(run(others.counts(kAnn)));
  auto large = publication({}, "large");
  auto message = item::Value::map();
  message.set_member("title", item::Value::string("large"));
  message.set_member("body", item::Value::string(std::string(90'000, 'x')));
  large.content.message = item::encode(message);
  // More than is kept.
  for (int i = 0; i < 900; ++i) EXPECT_TRUE(run(posts_.publish(large)));
  std::string before;
  size_t found = 0;
  do {
    const auto page = run(others.feed(kAnn, {.limit = 100, .before = before})).value();
    for (const auto& entry : page.entries)
      found += store::text_of(content_of(*entry.message), "body").size() == 90'000;
    before = page.next;
  } while (!before.empty());
  EXPECT_EQ(found, 900u);
}

TEST_F(InboxPosts, ADigestOfMoreThanAreShownCountsAllOfThem) {
  const auto digest = window();
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) {
    ids.push_back(run(posts_.publish(gathered("one")))->post.id);
    EXPECT_TRUE(carry_on(ids.back()));
  }
  clock_.advance(seconds(60));
  EXPECT_TRUE(publish_digest(digest));
  const auto shown = [&] {
    const auto page = run(boxes_.feed(kAnn, {.limit = 10})).value();
    EXPECT_EQ(page.entries.size(), 1u);
    return content_of(*page.entries.at(0).message);
  };
  const auto count = [&] { return store::number_of(*shown().member("digest"), "count"); };
  EXPECT_EQ(count(), 60);
  EXPECT_TRUE(*run(posts_.redact(kShop, ids.front(), {})));
  EXPECT_EQ(count(), 59) << "it was not among those that are shown";
  for (size_t i = 10; i < ids.size(); ++i) EXPECT_TRUE(*run(posts_.redact(kShop, ids[i], {})));
  EXPECT_EQ(count(), 9) << "the others are still there";
  EXPECT_EQ(store::text_of(shown(), "title"), "9 new: news");
  for (size_t i = 1; i < 10; ++i) EXPECT_TRUE(*run(posts_.redact(kShop, ids[i], {})));
  EXPECT_EQ(run(boxes_.feed(kAnn, {.limit = 10}))->entries.size(), 0u);
}

TEST_F(InboxPosts, ADigestOfOneHasAllThatItsMessageHas) {
  auto alone = gathered("one");
  auto message = item::Value::map();
  message.set_member("title", item::Value::string("one"));
  message.set_member("body", item::Value::string(std::string(5'000, 'x')));
  message.set_member("order", item::Value::integer(7));
  alone.content.message = item::encode(message);
  alone.content.sender = "shop";
  const auto digest = window();
  EXPECT_TRUE(carry_on(run(posts_.publish(alone))->post.id));
  clock_.advance(seconds(60));
  EXPECT_TRUE(publish_digest(digest));
  const auto page = run(boxes_.feed(kAnn, {.limit = 1})).value();
  ASSERT_EQ(page.entries.size(), 1u);
  const auto content = content_of(*page.entries[0].message);
  EXPECT_EQ(content.member("body")->content().size(), 5'000u);
  EXPECT_EQ(store::number_of(content, "order"), 7);
  EXPECT_EQ(store::number_of(*content.member("digest"), "count"), 1);
}

}  // namespace
}  // namespace tabella::inbox

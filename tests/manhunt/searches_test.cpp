// When people are asked, by a clock that is moved: nights, rounds, bundles, and steps that overlap.
#include <chrono>
#include <functional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/time_text.h"
#include "manhunt/heartbeats.h"
#include "manhunt/links.h"
#include "manhunt/manhunt_fixture.h"
#include "manhunt/replies.h"
#include "manhunt/timeline.h"

namespace tabella::manhunt {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr DailyWindow kNight{.from = 22 * 60, .to = 7 * 60};

class SearchesTest : public ManhuntFixture {
 protected:
  SearchesTest() { boost::asio::co_spawn(context_, schedule_.run(), boost::asio::detached); }
  ~SearchesTest() override {
    schedule_.stop();
    context_.run();
  }

  void until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) context_.run_for(milliseconds{5});
    EXPECT_TRUE(condition());
  }
  // So that what would come too early comes.
  void look() { context_.run_for(milliseconds{40}); }

  void move_to(std::string_view time) {
    look();
    clock_.advance(std::chrono::ceil<milliseconds>(parse_time(time).value() - clock_.now()));
  }
  void asked_at(std::string_view time, size_t count) {
    move_to(time);
    until([&] { return recorder_->sent.size() >= count; });
    look();
    EXPECT_EQ(recorder_->sent.size(), count) << time;
  }
  void fails_at(const Search& search, std::string_view time) {
    look();
    EXPECT_EQ(full(search).search.status, Status::active) << "before " << time;
    move_to(time);
    until([&] { return full(search).search.status == Status::failed; });
  }

  void is_begun(const Search& search) {
    until([&] { return !full(search).attempts.empty(); });
  }
  void is_sent(const Search& search) {
    until([&] { return full(search).attempts.at(0).state == AttemptState::sent; });
  }

  // The provider took what was sent for it, and says now that it did not arrive.
  void lose(const Search& search) {
    is_sent(search);
    const auto attempt = full(search).attempts.at(0);
    EXPECT_TRUE(
        run(searches_.note_undelivered(search.id, attempt.id, attempt.tries.back().reference, "lost")));
  }

  // Of low urgency: what was sent for it before the night did not arrive, and it is night now.
  Search lost_in_the_night() {
    move_to("2026-11-18T21:50:00Z");
    contact("cbob", {minutes(0)}, kNight);
    const auto search = open({.contact = "cbob", .key = "disk", .low_urgency = true, .wait = minutes(20)});
    asked_at("2026-11-18T21:50:00Z", 1);
    move_to("2026-11-18T22:01:00Z");
    lose(search);
    return search;
  }

  static TimePoint expiry_of(const std::string& link) {
    const auto token = parse_link_token(link.substr(link.find(kLinkPath) + kLinkPath.size()));
    EXPECT_TRUE(token) << link;
    return token ? token->expires : TimePoint{};
  }

  FullSearch full(const Search& search) { return run(searches_.find_full(search.id)).value().value(); }
  Search open(OpenRequest request) {
    request.domain = "shop";
    return run(searches_.open(std::move(request))).value().search;
  }
  void contact(const std::string& id, std::vector<milliseconds> delays, std::optional<DailyWindow> quiet = {},
               RateLimit limit = {}) {
    FullContact made{.contact = {.id = id, .domain = "shop", .name = id, .quiet = quiet}};
    for (const auto delay : delays)
      made.methods.push_back({.id = fmt::format("m{}{}", id, made.methods.size()),
                              .contact = id,
                              .kind = ChannelKind::phone,
                              .destination = "+390612345678",
                              .delay = delay,
                              .order = static_cast<int64_t>(made.methods.size()),
                              .limit = limit});
    EXPECT_TRUE(run(contacts_.create(made)));
  }
  void policy(const std::string& name, std::vector<PolicyStep> steps, int64_t repeat = 0) {
    EXPECT_TRUE(run(domains_.put_policy("shop", name, {.steps = std::move(steps), .repeat = repeat})));
  }

 private:
  boost::asio::io_context context_{1};
};

TEST_F(SearchesTest, AnAttemptIsOneReadAndTwoWrites) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {milliseconds(500), minutes(1)});
  open({.contact = "cbob"});
  look();
  int reads = 0, writes = 0;
  store_.decide([&](test::FaultyStore::Call made) {
    ++(made.writes ? writes : reads);
    return test::Fault::none;
  });
  asked_at("2026-11-18T09:00:00.500Z", 1);
  EXPECT_EQ(std::pair(reads, writes), std::pair(1, 2)) << "and those of its timer";
}

TEST_F(SearchesTest, RoundsThatFallIntoTheNightFollowEachOtherInTheMorning) {
  move_to("2026-11-18T23:00:00Z");
  contact("cbob", {minutes(0)}, kNight);
  const auto search = open({.contact = "cbob", .low_urgency = true, .wait = minutes(5), .repeat = 2});
  for (const auto* night : {"2026-11-18T23:05:00Z", "2026-11-18T23:10:00Z", "2026-11-19T06:59:59Z"})
    asked_at(night, 0);
  asked_at("2026-11-19T07:00:00Z", 1);
  asked_at("2026-11-19T07:04:59Z", 1);
  asked_at("2026-11-19T07:05:00Z", 2);
  asked_at("2026-11-19T07:10:00Z", 3);
  move_to("2026-11-19T07:14:59Z");
  fails_at(search, "2026-11-19T07:15:00Z");
}

TEST_F(SearchesTest, WhoWasAskedFirstGoesOnBeingAskedAfterTheLastStep) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0), minutes(10), minutes(20)});
  contact("ccy", {minutes(0)});
  policy("all", {{.targets = {{.contact = "cbob"}}, .wait = minutes(5)},
                 {.targets = {{.contact = "ccy"}}, .wait = minutes(5)}});
  const auto search = open({.policy = "all"});
  asked_at("2026-11-18T09:00:00Z", 1);
  asked_at("2026-11-18T09:05:00Z", 2);
  asked_at("2026-11-18T09:10:00Z", 3);
  asked_at("2026-11-18T09:30:00Z", 4);
  move_to("2026-11-18T09:34:59Z");
  fails_at(search, "2026-11-18T09:35:00Z");
}

TEST_F(SearchesTest, OneThatWaitsForItsBundleIsNotOverBeforeIt) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T09:00:00Z", 1);
  const auto search = open({.contact = "cbob", .wait = minutes(5)});
  asked_at("2026-11-18T09:14:59Z", 1);
  EXPECT_EQ(full(search).attempts.at(0).state, AttemptState::bundled);
  asked_at("2026-11-18T09:15:01Z", 2);
  move_to("2026-11-18T09:20:00Z");
  fails_at(search, "2026-11-18T09:20:02Z");
  EXPECT_EQ(full(search).attempts.at(0).state, AttemptState::sent);
}

TEST_F(SearchesTest, ABundleOfWhatIsNotUrgentWaitsForTheMorning) {
  move_to("2026-11-18T21:50:00Z");
  contact("cbob", {minutes(0)}, kNight, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T21:50:00Z", 1);
  const auto search = open({.contact = "cbob", .low_urgency = true, .wait = minutes(5)});
  asked_at("2026-11-18T22:00:01Z", 1);
  asked_at("2026-11-19T06:59:59Z", 1);
  EXPECT_EQ(full(search).attempts.at(0).state, AttemptState::bundled);
  asked_at("2026-11-19T07:00:01Z", 2);
  move_to("2026-11-19T07:04:59Z");
  fails_at(search, "2026-11-19T07:05:02Z");
}

TEST_F(SearchesTest, ABundleThatBecomesUrgentDoesNotWaitForTheMorning) {
  move_to("2026-11-18T21:50:00Z");
  contact("cbob", {minutes(0)}, kNight, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T21:50:00Z", 1);
  const auto search = open({.contact = "cbob", .key = "disk", .low_urgency = true, .wait = minutes(5)});
  asked_at("2026-11-18T23:00:00Z", 1);
  EXPECT_EQ(open({.contact = "cbob", .key = "disk"}).id, search.id);
  asked_at("2026-11-18T23:00:01Z", 2);
  fails_at(search, "2026-11-18T23:05:02Z");
}

TEST_F(SearchesTest, TheLinkOfABundleIsGoodForAsLongAsAnyOther) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T09:00:00Z", 1);
  open({.contact = "cbob"});
  asked_at("2026-11-18T09:15:01Z", 2);
  EXPECT_GE(expiry_of(recorder_->last_link), parse_time("2026-11-19T09:15:00Z").value());
}

TEST_F(SearchesTest, WhatDidNotArriveIsNotSentAgainInTheNight) {
  const auto search = lost_in_the_night();
  move_to("2026-11-19T06:59:59Z");
  EXPECT_EQ(second_->sent.size(), 0u);
  EXPECT_EQ(full(search).search.status, Status::active);
  move_to("2026-11-19T07:00:00Z");
  until([&] { return second_->sent.size() == 1; });
  move_to("2026-11-19T07:19:59Z");
  fails_at(search, "2026-11-19T07:20:02Z");
}

TEST_F(SearchesTest, WhatDidNotArriveIsSentAgainInTheNightOnceItIsUrgent) {
  const auto search = lost_in_the_night();
  look();
  EXPECT_EQ(second_->sent.size(), 0u);
  EXPECT_FALSE(open({.contact = "cbob", .key = "disk"}).low_urgency);
  until([&] { return second_->sent.size() == 1; });
}

TEST_F(SearchesTest, WhatDidNotArriveIsNotSentAgainByAMethodThatWasRemoved) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)});
  const auto search = open({.contact = "cbob"});
  asked_at("2026-11-18T09:00:00Z", 1);
  EXPECT_TRUE(run(contacts_.remove_method("cbob", "mcbob0")).value());
  lose(search);
  until([&] { return full(search).attempts.at(0).state == AttemptState::failed; });
  EXPECT_EQ(second_->sent.size(), 0u);
}

TEST_F(SearchesTest, WhatIsSentAgainHasALinkThatIsGoodFromThenOn) {
  const auto search = lost_in_the_night();
  move_to("2026-11-19T07:00:00Z");
  until([&] { return full(search).attempts.at(0).state == AttemptState::sent; });
  EXPECT_GE(expiry_of(second_->last_link), parse_time("2026-11-20T07:00:00Z").value());
}

TEST_F(SearchesTest, TheTextThatWasSentLastIsAnsweredThoughItWasSentAgain) {
  move_to("2026-11-18T09:00:00Z");
  FullContact bob{.contact = {.id = "cbob", .domain = "shop", .name = "Bob", .language = "it"}};
  bob.methods.push_back(
      {.id = "mbob", .contact = "cbob", .kind = ChannelKind::text, .destination = "+390612345678"});
  EXPECT_TRUE(run(contacts_.create(bob)));
  const auto first = open({.contact = "cbob", .wait = minutes(30)});
  asked_at("2026-11-18T09:00:00Z", 1);
  move_to("2026-11-18T09:05:00Z");
  const auto second = open({.contact = "cbob", .wait = minutes(30)});
  asked_at("2026-11-18T09:05:00Z", 2);
  move_to("2026-11-18T09:06:00Z");
  lose(first);
  until([&] { return full(first).attempts.at(0).state == AttemptState::sent && second_->sent.size() == 1; });
  Replies replies{store_, clock_, searches_};
  const std::string number = "+390612345678";
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(run(replies.take(number, "I am on holiday")), ""); }),
            std::pair(0, 0));
  EXPECT_EQ(run(replies.take(number, "1")).value(), "Grazie. Ha accettato.") << "as he was asked";
  EXPECT_EQ(full(first).search.status, Status::successful);
  EXPECT_EQ(full(second).search.status, Status::active);
  EXPECT_EQ(run(replies.take(number, "1 " + full(second).attempts.at(0).code)).value(),
            "Grazie. Ha accettato.");
  EXPECT_EQ(full(second).search.status, Status::successful);
}

TEST_F(SearchesTest, ABundleIsNotSentByAMethodThatWasRemoved) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T09:00:00Z", 1);
  const auto search = open({.contact = "cbob", .wait = minutes(30)});
  is_begun(search);
  EXPECT_TRUE(run(contacts_.remove_method("cbob", "mcbob0")).value());
  asked_at("2026-11-18T09:15:01Z", 1);
  EXPECT_EQ(full(search).attempts.at(0).state, AttemptState::skipped);
  EXPECT_EQ(full(search).attempts.at(0).detail, kNotUsedAnyMore);
}

TEST_F(SearchesTest, WhatGoesWithWhatIsUrgentIsNotWaitedForUntilTheMorning) {
  move_to("2026-11-18T21:50:00Z");
  contact("cbob", {minutes(0)}, kNight, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T21:50:00Z", 1);
  const auto search = open({.contact = "cbob", .low_urgency = true, .wait = minutes(5)});
  is_begun(search);
  is_begun(open({.contact = "cbob", .wait = minutes(5)}));
  asked_at("2026-11-18T22:00:01Z", 2);
  move_to("2026-11-18T22:04:59Z");
  fails_at(search, "2026-11-18T22:05:03Z");
}

TEST_F(SearchesTest, AMessageIsAnsweredAndNotTheOneThatCameAfterIt) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  std::vector<Search> opened;
  for (int i = 0; i < 4; ++i) opened.push_back(open({.contact = "cbob", .wait = minutes(30)}));
  until([&] {
    return std::ranges::all_of(opened, [&](const Search& one) { return !full(one).attempts.empty(); });
  });
  std::erase_if(opened,
                [&](const Search& one) { return full(one).attempts.at(0).state != AttemptState::bundled; });
  ASSERT_EQ(opened.size(), 3u);
  // One is written down as bundled when the message with the others has gone.
  const auto late = full(opened[2]).attempts.at(0);
  const auto place = store::Row()
                         .set("PK", bundle_partition(late.bundle))
                         .set("SK", fmt::format("{}|{}", late.search, late.id.text()));
  EXPECT_TRUE(run(engine_.delete_item(store::Delete("manhunt", place))));
  asked_at("2026-11-18T09:15:01Z", 2);
  move_to("2026-11-18T09:15:10Z");
  std::vector<store::TransactWrite> join;
  join.push_back(bundles_.join_write(late));
  EXPECT_TRUE(run(engine_.transact_write_items({.writes = std::move(join)})));
  EXPECT_TRUE(run(bundles_.expect(late)));
  asked_at("2026-11-18T09:15:20Z", 3);
  const auto answered = full(opened[0]).attempts.at(0);
  EXPECT_TRUE(run(searches_.answer(opened[0].id, {.accept = true, .attempt = answered.id, .how = "api"})));
  EXPECT_EQ(full(opened[1]).search.status, Status::successful);
  EXPECT_EQ(full(opened[2]).search.status, Status::active);
}

TEST_F(SearchesTest, AHeartbeatThatIsMissedInAMaintenanceWindowIsLookedAtWhenThatIsOver) {
  move_to("2026-11-17T09:30:00Z");
  contact("cbob", {minutes(0)});
  policy("all", {{.targets = {{.contact = "cbob"}}, .wait = minutes(5)}});
  Heartbeats heartbeats{
      {.store = store_, .clock = clock_, .schedule = schedule_, .domains = domains_, .searches = searches_},
      "manhunt"};
  EXPECT_TRUE(run(heartbeats.put(
      {.domain = "shop", .name = "backup", .every = std::chrono::hours(24), .policy = "all"})));
  EXPECT_TRUE(run(domains_.put("shop", Part::maintenance, "night",
                               R"({"from": "2026-11-18T09:00:00Z", "to": "2026-11-18T10:00:00Z"})")));
  asked_at("2026-11-18T09:59:59Z", 0);
  asked_at("2026-11-18T10:00:01Z", 1);
}

TEST_F(SearchesTest, OverridesTakeNoRoomFromWhatElseADomainHas) {
  EXPECT_TRUE(run(domains_.put("shop", Part::schedule, "primary",
                               R"({"timezone": "UTC", "title": "", "rotations": [], "overrides": []})")));
  const auto as_it_is = [](OnCallSchedule&) -> Checked<void> { return {}; };
  EXPECT_TRUE(run(domains_.change_schedule("shop", "primary", as_it_is)).value());
  const auto before = run(domains_.find("shop")).value();
  EXPECT_TRUE(run(domains_.change_schedule("shop", "primary", [](OnCallSchedule& changed) -> Checked<void> {
                for (int i = 0; i < 100; ++i)
                  changed.overrides.push_back({.id = fmt::format("o{}", i),
                                               .contact = "cann",
                                               .from = parse_time("2026-11-18T09:00:00Z").value(),
                                               .to = parse_time("2026-11-18T10:00:00Z").value()});
                return {};
              })).value());
  const auto after = run(domains_.find("shop")).value();
  EXPECT_EQ(after->overrides, 100u);
  EXPECT_NEAR(static_cast<double>(after->bytes), static_cast<double>(before->bytes), 8) << "of its length";
}

TEST_F(SearchesTest, ABundleThatDidNotArriveIsSentByTheNext) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T09:00:00Z", 1);
  const std::vector searches{open({.contact = "cbob"}), open({.contact = "cbob"})};
  for (const auto& search : searches) is_begun(search);
  asked_at("2026-11-18T09:15:01Z", 2);
  for (const auto& search : searches) is_sent(search);
  lose(searches[0]);
  until([&] { return second_->sent.size() == 1; });
  for (const auto& search : searches) {
    until([&] { return full(search).attempts.at(0).state == AttemptState::sent; });
    EXPECT_EQ(full(search).attempts.at(0).tries.size(), 2u);
    EXPECT_EQ(full(search).attempts.at(0).progress, "");
  }
  look();
  EXPECT_EQ(second_->sent.size(), 1u);
}

TEST_F(SearchesTest, WhatIsUrgentDoesNotWaitBehindABundleThatIsNot) {
  move_to("2026-11-18T21:50:00Z");
  contact("cbob", {minutes(0)}, kNight, {.count = 1, .per = minutes(15)});
  open({.contact = "cbob"});
  asked_at("2026-11-18T21:50:00Z", 1);
  is_begun(open({.contact = "cbob", .low_urgency = true}));
  const auto urgent = open({.contact = "cbob"});
  // Counted in time, and written down late.
  bool refused = false;
  store_.decide([&](test::FaultyStore::Call call) {
    if (!call.writes || call.number < 2) return test::Fault::none;
    refused = true;
    return test::Fault::refuse;
  });
  until([&] { return refused; });
  asked_at("2026-11-18T22:00:01Z", 1);
  store_.decide({});
  move_to("2026-11-18T22:01:00Z");
  until([&] { return !full(urgent).attempts.empty(); });
  EXPECT_EQ(full(urgent).attempts.at(0).state, AttemptState::bundled);
  asked_at("2026-11-18T22:01:10Z", 2);
}

TEST_F(SearchesTest, WhoIsKilledWhileASearchBecomesUrgentIsFollowedByTheStream) {
  move_to("2026-11-18T23:00:00Z");
  contact("cbob", {minutes(0)}, kNight);
  const auto search = open({.contact = "cbob", .low_urgency = true, .wait = minutes(5)});
  asked_at("2026-11-18T23:00:01Z", 0);
  const auto before = to_item(full(search).search);
  store::Update urgent("manhunt", search_key(search.id));
  urgent.remove("lowUrgency").set("raising", true);
  EXPECT_TRUE(run(engine_.update_item(std::move(urgent))));
  handle(
      {.event = store::StreamEvent::modify, .old_image = before, .new_image = to_item(full(search).search)});
  until([&] { return recorder_->sent.size() == 1; });
  EXPECT_FALSE(full(search).search.raising);
}

TEST_F(SearchesTest, ATimelineSaysBeforehandWhenEachIsAsked) {
  move_to("2026-11-18T21:40:00Z");
  contact("cbob", {minutes(0), minutes(10), minutes(30)}, kNight);
  contact("ccy", {minutes(0), minutes(3)});
  policy("all",
         {{.targets = {{.contact = "cbob"}}, .wait = minutes(5)},
          {.targets = {{.contact = "ccy"}, {.contact = "cbob"}}, .wait = minutes(15)}},
         1);
  const auto search = open({.policy = "all", .low_urgency = true});
  const auto domain = run(domains_.find("shop")).value();
  const auto directory = run(load_contacts(contacts_, "shop", {"cbob", "ccy"})).value();
  const auto planned = timeline_of(full(search), *domain, directory, clock_.now());
  ASSERT_EQ(planned.entries.size(), 16u);
  for (size_t i = 0; i < planned.entries.size(); ++i) {
    const auto at = planned.entries[i].at;
    const auto by_then = std::ranges::count_if(planned.entries, [&](const auto& e) { return e.at <= at; });
    asked_at(time_text(at), static_cast<size_t>(by_then));
  }
  std::map<AttemptId, TimePoint> made;
  for (const auto& attempt : full(search).attempts) made.emplace(attempt.id, time_at(attempt.started));
  for (const auto& entry : planned.entries)
    EXPECT_EQ(time_text(made.at(entry.id)), time_text(entry.at)) << entry.id.text();
  move_to(time_text(planned.ends - milliseconds(1)));
  fails_at(search, time_text(planned.ends));
}

TEST_F(SearchesTest, AnAttemptThatIsTriedAgainIsCountedOnce) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 2, .per = minutes(15)});
  open({.contact = "cbob"});
  bool refused = false;
  store_.decide([&](test::FaultyStore::Call call) {
    if (!call.writes || call.number != 2) return test::Fault::none;  // those before have counted it
    refused = true;
    return test::Fault::refuse;
  });
  until([&] { return refused; });
  asked_at("2026-11-18T09:01:00Z", 1);
  const auto second = open({.contact = "cbob"});
  is_begun(second);
  is_sent(second);  // it is within the limit
}

TEST_F(SearchesTest, MoreThanOneMessageTakesComeAsSeveral) {
  move_to("2026-11-18T09:00:00Z");
  contact("cbob", {minutes(0)}, {}, {.count = 1, .per = minutes(15)});
  std::vector<Search> opened;
  for (int i = 0; i < 1'002; ++i) opened.push_back(open({.contact = "cbob"}));
  until([&] {
    return std::ranges::all_of(opened, [&](const Search& one) { return !full(one).attempts.empty(); });
  });
  EXPECT_EQ(recorder_->sent.size(), 1u);
  clock_.advance(minutes(16));
  until([&] { return recorder_->sent.size() == 4; });
  until([&] {
    return std::ranges::all_of(
        opened, [&](const Search& one) { return full(one).attempts.at(0).state == AttemptState::sent; });
  });
}

TEST_F(SearchesTest, WhoIsNotOnCallYetIsWaitedFor) {
  move_to("2026-11-18T08:58:00Z");
  contact("cbob", {minutes(0)});
  OnCallSchedule schedule;
  schedule.rotations.push_back({.contacts = {"cbob"},
                                .start = *parse_local_time("2026-11-01T00:00:00"),
                                .between = DailyWindow{.from = 9 * 60, .to = 17 * 60}});
  std::string json;
  {
    JsonObjectWriter object(json);
    write_schedule(object, schedule);
  }
  EXPECT_TRUE(run(domains_.put("shop", Part::schedule, "day", json)));
  policy("day", {{.targets = {{.schedule = "day"}}, .wait = minutes(5)}}, 1);
  open({.policy = "day"});
  asked_at("2026-11-18T09:02:59Z", 0);
  asked_at("2026-11-18T09:03:00Z", 1);
}

}  // namespace
}  // namespace tabella::manhunt

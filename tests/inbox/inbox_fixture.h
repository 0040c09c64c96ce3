// The parts of an inbox over an engine, in front of which things can go wrong.
#pragma once

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "inbox/boxes.h"
#include "inbox/digests.h"
#include "inbox/posts.h"
#include "journal/faulty_store.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::inbox {

using test::run;

inline const Place kShop{.tenant = "shop", .inbox = "bell"};
inline const Box kAnn{.place = kShop, .user = "ann"};

class InboxFixture : public testing::Test {
 protected:
  InboxFixture() {
    EXPECT_TRUE(run(store::prepare_tables(engine_, {plan_inbox_table("inbox"), schedule::plan("timers")},
                                          store::Missing::create)));
  }

  static Publication publication(std::vector<std::string> users, std::string title = "title") {
    Publication made{.place = kShop, .users = std::move(users)};
    made.content = {.category = "news", .everyone = made.users.empty()};
    auto message = item::Value::map();
    message.set_member("title", item::Value::string(std::move(title)));
    made.content.message = item::encode(message);
    made.time_to_live = std::chrono::hours(1);
    return made;
  }
  std::string publish(std::vector<std::string> users) {
    return run(posts_.publish(publication(std::move(users)))).value().post.id;
  }

  // A timer's handler; false: it failed, and is called again.
  template <class Part>
  bool fire(Part& part, boost::asio::awaitable<void> (Part::*handler)(const schedule::Firing&),
            const std::string& payload) {
    const schedule::Firing firing{.timer = {"t", "k", clock_.now(), payload}};
    try {
      return run([](Part& by, auto handle, const schedule::Firing& fired) -> store::Async<void> {
               co_await (by.*handle)(fired);
               co_return store::Result<void>();
             }(part, handler, firing))
          .has_value();
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  std::vector<std::string> titles(const Box& box) {
    std::vector<std::string> all;
    for (const auto& entry : run(boxes_.feed(box, {.limit = 100}))->entries) {
      const auto title = content_of(*entry.message).member("title");
      all.emplace_back(title ? title->content() : "");
    }
    return all;
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

}  // namespace tabella::inbox

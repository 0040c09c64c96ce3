// Manhunt on an embedded store, with a clock that is moved by hand and a provider that takes everything.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "journal/faulty_store.h"
#include "manhunt/runner.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::manhunt {

using test::run;

// Takes everything, and remembers it.
class Recorder final : public Provider {
 public:
  explicit Recorder(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool serves(ChannelKind) const override { return true; }
  boost::asio::awaitable<Sent> send(const Message& message) override {
    sent.push_back(message.id);
    last_link = message.link;
    co_return Sent{.reference = message.id};
  }
  std::vector<std::string> sent;
  std::string last_link;

 private:
  const std::string name_;
};

class ManhuntFixture : public testing::Test {
 protected:
  ManhuntFixture() {
    EXPECT_TRUE(run(store::prepare_tables(engine_, {plan_manhunt_table("manhunt"), schedule::plan("timers")},
                                          store::Missing::create)));
    recorder_ = add_recorder("recorder");
    second_ = add_recorder("second");
    FullContact ann{.contact = {.id = "cann", .domain = "shop", .name = "Ann"}};
    for (int i = 0; i < 3; ++i)
      ann.methods.push_back({.id = fmt::format("m{}", i),
                             .contact = "cann",
                             .kind = ChannelKind::phone,
                             .destination = "+390612345678",
                             .order = i});
    EXPECT_TRUE(run(contacts_.create(ann)));
  }

  Recorder* add_recorder(const std::string& name) {
    auto recorder = std::make_unique<Recorder>(name);
    auto* const added = recorder.get();
    providers_.push_back(std::move(recorder));
    return added;
  }

  // How many reads and writes the call makes.
  template <class Call>
  std::pair<int, int> requests_of(Call call) {
    int reads = 0, writes = 0;
    store_.decide([&](test::FaultyStore::Call made) {
      ++(made.writes ? writes : reads);
      return test::Fault::none;
    });
    call();
    store_.decide({});
    return {reads, writes};
  }

  Search open() { return run(searches_.open({.domain = "shop", .contact = "cann"})).value().search; }

  // A search row and nothing else: its step and timers are for who follows the stream.
  Search written_by_another() {
    const auto search = run(searches_.draft({.domain = "shop", .contact = "cann"})).value();
    EXPECT_TRUE(run(engine_.put_item(store::Put("manhunt", to_item(search)))));
    return search;
  }

  void handle(const Search& search) {
    handle({.event = store::StreamEvent::insert, .new_image = to_item(search)});
  }
  void handle(const store::StreamRecord& record) {
    const std::vector<store::StreamRecord> records{record};
    run([](Runner& runner, const std::vector<store::StreamRecord>& all) -> store::Async<void> {
      co_await runner.handle(all);
      co_return store::Result<void>();
    }(runner_, records))
        .value();
  }

  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path()}, clock_};
  test::FaultyStore store_{engine_};
  schedule::Schedule schedule_{
      engine_,
      clock_,
      {.table = "timers", .busy_poll = std::chrono::milliseconds{5}, .poll = std::chrono::milliseconds{5}}};
  access::Secrets secrets_;
  Domains domains_{store_, clock_, secrets_, "manhunt", false};
  Contacts contacts_{store_, "manhunt"};
  Providers providers_;
  Recorder* recorder_ = nullptr;
  Recorder* second_ = nullptr;  // is asked where the first could not deliver
  Sender sender_{store_, clock_, providers_, {.base = "http://here"}, "manhunt"};
  Searches searches_{
      {.store = store_, .clock = clock_, .schedule = schedule_, .domains = domains_, .contacts = contacts_},
      "manhunt"};
  Bundles bundles_{{.store = store_,
                    .clock = clock_,
                    .schedule = schedule_,
                    .domains = domains_,
                    .contacts = contacts_,
                    .sender = sender_},
                   "manhunt"};
  net::Outbound outbound_{{}};
  Events events_{{.clock = clock_,
                  .schedule = schedule_,
                  .outbound = outbound_,
                  .domains = domains_,
                  .searches = searches_}};
  Runner runner_{{.store = store_,
                  .clock = clock_,
                  .schedule = schedule_,
                  .domains = domains_,
                  .contacts = contacts_,
                  .searches = searches_,
                  .sender = sender_,
                  .bundles = bundles_,
                  .events = events_},
                 "manhunt"};
};

}  // namespace tabella::manhunt

// Entities over the embedded engine, and over one whose answers get lost.
#include "library/entity.h"

#include <atomic>
#include <charconv>
#include <future>
#include <set>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "engine/engine.h"
#include "journal/parts.h"
#include "journal/replay.h"
#include "library/entities.h"
#include "net/threads.h"
#include "store/pause.h"
#include "store/rows.h"
#include "support/empty_store.h"
#include "support/folder.h"

namespace tabella {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;

template <class T>
T wait(awaitable<T> work) {
  boost::asio::io_context context;
  auto result = boost::asio::co_spawn(context, std::move(work), boost::asio::use_future);
  context.run();
  return result.get();
}

// Makes what it is asked for, and is not always able to say so.
class ForgetfulStore final : public test::EmptyStore {
 public:
  // cut_off: the answer, and reads after it
  enum class Lost { answer, request, cut_off };

  explicit ForgetfulStore(store::Store& store) : store_(store) {}

  // What happens to the next transactions, one after the other.
  void lose(std::vector<Lost> next) { lost_ = std::move(next); }
  std::function<void()> after_loss;
  std::atomic<bool> hold = false;  // transactions wait for as long
  std::atomic<int> held = 0;

  store::Async<store::TransactWriteItemsResult> transact_write_items(
      store::TransactWriteItemsRequest request) override {
    ++held;
    while (hold) co_await store::pause_for(milliseconds{1});
    --held;
    if (lost_.empty()) co_return co_await store_.transact_write_items(std::move(request));
    const auto lost = lost_.front();
    lost_.erase(lost_.begin());
    if (lost != Lost::request) {
      const auto made = co_await store_.transact_write_items(std::move(request));
      EXPECT_TRUE(made);
    }
    if (after_loss) std::exchange(after_loss, {})();
    cut_off_ = lost == Lost::cut_off;
    store::Error error(store::ErrorCode::unavailable, "the connection was lost");
    error.unsure = true;
    co_return std::unexpected(std::move(error));
  }

  store::Async<store::WriteResult> put_item(store::PutItemRequest request) override {
    return store_.put_item(std::move(request));
  }
  store::Async<store::WriteResult> update_item(store::UpdateItemRequest request) override {
    return store_.update_item(std::move(request));
  }
  store::Async<store::WriteResult> delete_item(store::DeleteItemRequest request) override {
    return store_.delete_item(std::move(request));
  }
  store::Async<store::GetItemResult> get_item(store::GetItemRequest request) override {
    if (cut_off_.exchange(false)) co_return store::fail(store::ErrorCode::unavailable, "no answer");
    co_return co_await store_.get_item(std::move(request));
  }
  store::Async<store::Page> query(store::QueryRequest request) override {
    if (cut_off_.exchange(false)) co_return store::fail(store::ErrorCode::unavailable, "no answer");
    co_return co_await store_.query(std::move(request));
  }
  store::Async<store::BatchGetItemResult> batch_get_item(store::BatchGetItemRequest request) override {
    return store_.batch_get_item(std::move(request));
  }
  store::Async<store::BatchWriteItemResult> batch_write_item(store::BatchWriteItemRequest request) override {
    return store_.batch_write_item(std::move(request));
  }

 private:
  store::Store& store_;
  std::vector<Lost> lost_;
  std::atomic<bool> cut_off_ = false;
};

using Lost = ForgetfulStore::Lost;

// A sum, of numbers.
struct Sum {
  int64_t total = 0;
};
using Added = int64_t;
using Kind = EntityKind<Sum, Added>;
using Sums = Entities<Sum, Added>;
using Command = std::function<Decision<Added>(const Sum&)>;

Checked<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{})
    return invalid("'" + std::string(text) + "' is no number");
  return number;
}

Command add(std::vector<Added> numbers) {
  return [numbers = std::move(numbers)](const Sum&) -> Decision<Added> { return numbers; };
}

Command take(int64_t number) {
  return [number](const Sum& sum) -> Decision<Added> {
    if (sum.total < number) return refuse("there is only " + std::to_string(sum.total));
    return std::vector<Added>{-number};
  };
}

class EntityTest : public testing::Test {
 protected:
  EntityTest() {
    const auto made =
        wait(store::prepare_tables(engine_, journal::tables_of(options_, ""), store::Missing::create));
    EXPECT_TRUE(made) << made.error().message;
  }

  Kind kind(uint64_t snapshot_every = 0) {
    Kind made{.apply =
                  [this](Sum sum, Added number) {
                    ++applied_;
                    return Sum{sum.total + number};
                  },
              .encode = [](Added number) { return journal::NewEvent{.payload = std::to_string(number)}; },
              .decode = [](const journal::Event& event) { return number_in(event.payload()); }};
    if (snapshot_every == 0) return made;
    made.snapshot_every = snapshot_every;
    made.save = [](const Sum& sum) { return std::to_string(sum.total); };
    made.load = [](std::string_view text) -> Checked<Sum> {
      TABELLA_ASSIGN(const auto total, number_in(text));
      return Sum{total};
    };
    return made;
  }

  Entity<Sum, Added> entity(const Kind& of) { return {journals_, "sums", "a", of}; }

  // As somebody sees it who comes now.
  Outcome<Sum> recovered(const Kind& of) {
    applied_ = 0;
    auto another = entity(of);
    return wait(another.recover_and_read());
  }

  uint64_t newest_snapshot() {
    const auto newest = wait(journal_.snapshots.newest({"sums", "a"}, {}));
    return newest && *newest ? (*newest)->number : 0;
  }

  // As Pekko's plugin writes it; in a batch, with its place there.
  void put_foreign(uint64_t number, std::optional<journal::Event::BatchPlace> place = {}) {
    store::Row row;
    row.set("par", "sums-P-a-0")
        .set("num", number)
        .set("persistence_id", "a")
        .set("seq", number)
        .set("event", store::Binary{std::to_string(number)})
        .set("ev_ser_id", 4)
        .set("writer_uuid", "295fa116-0000-4000-8000-000000000001");
    if (place) row.set("idx", place->index).set("cnt", place->last);
    EXPECT_TRUE(wait(engine_.put_item(store::Put(options_.table, std::move(row)))));
  }

  void delete_to(uint64_t to) { EXPECT_TRUE(wait(journal_.journal.delete_to({"sums", "a"}, to, true))); }

  const journal::Options options_{.operation_timeout = milliseconds{100}};
  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path()}, clock_};
  ForgetfulStore store_{engine_};
  journal::Parts journal_{store_, clock_, options_, "", false};
  Journals journals_{journal_.journal, journal_.snapshots, clock_};
  const Kind plain_ = kind();
  std::atomic<int> applied_ = 0;
};

TEST_F(EntityTest, IsWhatItsEventsHaveMadeOfIt) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  const auto done = wait(sum.execute(add({1, 2, 3})));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->version, 3u);
  EXPECT_EQ(done->events, 3u);
  EXPECT_EQ(sum.state().total, 6);
  EXPECT_EQ(recovered(plain_)->total, 6);
  EXPECT_EQ(applied_, 3);
}

TEST_F(EntityTest, PersistsNothingWhereACommandIsRefusedOrComesToNothing) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  const auto refused = wait(sum.execute(take(1)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Failure::Kind::refused);
  EXPECT_EQ(refused.error().message, "there is only 0");
  const auto nothing = wait(sum.execute(add({})));
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->events, 0u);
  EXPECT_EQ(wait(journal_.journal.extent({"sums", "a"}))->highest, 0u);
  EXPECT_TRUE(sum.is_current());
}

TEST_F(EntityTest, IsToBeRecoveredBeforeItsFirstCommand) {
  auto sum = entity(plain_);
  const auto done = wait(sum.execute(add({1})));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Failure::Kind::superseded);
}

TEST_F(EntityTest, FencesTheInstanceBefore) {
  auto first = entity(plain_);
  auto second = entity(plain_);
  ASSERT_TRUE(wait(first.recover()));
  ASSERT_TRUE(wait(first.execute(add({1}))));
  ASSERT_TRUE(wait(second.recover()));
  EXPECT_GT(second.epoch(), first.epoch());

  // Also before the second has written anything: it has taken the epoch.
  const auto late = wait(first.execute(add({10})));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Failure::Kind::superseded);
  EXPECT_NE(late.error().message.find("another instance has taken over a of journal sums"), std::string::npos)
      << late.error().message;
  EXPECT_FALSE(first.is_current());
  EXPECT_EQ(first.state().total, 1);
  EXPECT_FALSE(wait(first.execute(add({10}))));

  ASSERT_TRUE(wait(second.execute(add({100}))));
  ASSERT_TRUE(wait(first.recover()));
  EXPECT_EQ(first.state().total, 101);
  ASSERT_TRUE(wait(first.execute(add({1000}))));
  EXPECT_EQ(wait(second.execute(add({1}))).error().kind, Failure::Kind::superseded);
  EXPECT_EQ(recovered(plain_)->total, 1101);
}

TEST_F(EntityTest, NoticesEventsOfOneWhoHasNoEpoch) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1}))));
  journal::Append other{.entity = {"sums", "a"}, .events = {{.payload = "5"}}};
  ASSERT_TRUE(wait(journal_.journal.append(std::move(other))));
  const auto late = wait(sum.execute(add({10})));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Failure::Kind::superseded);
  EXPECT_NE(late.error().message.find("its last event is 2"), std::string::npos) << late.error().message;
  const auto again = wait(sum.recover_and_execute(add({10})));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(sum.state().total, 16);
}

TEST_F(EntityTest, TakesASnapshotEverySoManyEvents) {
  const auto with_snapshots = kind(10);
  auto sum = entity(with_snapshots);
  ASSERT_TRUE(wait(sum.recover()));
  for (int i = 1; i <= 9; ++i) ASSERT_TRUE(wait(sum.execute(add({1}))));
  EXPECT_EQ(newest_snapshot(), 0u);
  ASSERT_TRUE(wait(sum.execute(add({1, 1, 1}))));
  EXPECT_EQ(newest_snapshot(), 12u);
  for (int i = 13; i <= 25; ++i) ASSERT_TRUE(wait(sum.execute(add({1}))));
  EXPECT_EQ(newest_snapshot(), 22u);

  EXPECT_EQ(recovered(with_snapshots)->total, 25);
  EXPECT_EQ(applied_, 3);  // behind the snapshot
  delete_to(22);
  EXPECT_EQ(recovered(with_snapshots)->total, 25);
}

TEST_F(EntityTest, ReadsAllEventsWhereASnapshotIsOfNoUse) {
  auto with_snapshots = kind(2);
  auto sum = entity(with_snapshots);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1, 2}))));
  ASSERT_TRUE(wait(sum.execute(add({3}))));
  with_snapshots.load = [](std::string_view) -> Checked<Sum> { return invalid("of last year"); };
  EXPECT_EQ(recovered(with_snapshots)->total, 6);
  EXPECT_EQ(applied_, 3);

  delete_to(2);
  const auto lost = recovered(with_snapshots);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, Failure::Kind::unreadable);
  EXPECT_NE(lost.error().message.find("of last year"), std::string::npos) << lost.error().message;
  delete_to(3);
  EXPECT_FALSE(recovered(with_snapshots));
}

TEST_F(EntityTest, DoesNotTakeAPartOfItsEventsForAll) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1, 2, 3, 4, 5}))));
  delete_to(3);
  const auto part = recovered(plain_);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().kind, Failure::Kind::unreadable);
  EXPECT_NE(part.error().message.find("events 1 to 3"), std::string::npos) << part.error().message;

  // Without any it begins anew, and the numbers go on.
  delete_to(5);
  auto anew = entity(plain_);
  ASSERT_TRUE(wait(anew.recover()));
  EXPECT_EQ(anew.state().total, 0);
  const auto done = wait(anew.execute(add({7})));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->version, 6u);
}

TEST_F(EntityTest, ReadsOnBehindABatchThatAnotherProgramDidNotFinish) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({100, 200}))));
  // Numbers 3 to 6: its last two rows were never written.
  put_foreign(3, {{.index = 0, .last = 3}});
  put_foreign(4, {{.index = 1, .last = 3}});
  put_foreign(7);
  const auto read = wait(sum.recover());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(sum.state().total, 307);
  const auto done = wait(sum.execute(add({1000})));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->version, 8u);
  const auto later = recovered(plain_);
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->total, 1307);
}

TEST_F(EntityTest, ReadsUpToABatchThatAnotherProgramDidNotFinish) {
  put_foreign(1);
  put_foreign(2, {{.index = 0, .last = 3}});
  put_foreign(3, {{.index = 1, .last = 3}});
  put_foreign(4, {{.index = 0, .last = 1}});  // which it may be about to finish
  ASSERT_EQ(wait(journal_.journal.extent({"sums", "a"}))->highest, 3u);
  auto sum = entity(plain_);
  const auto read = wait(sum.recover());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(sum.state().total, 1);
  EXPECT_EQ(sum.version(), 3u);
}

TEST_F(EntityTest, TellsADeletedEventFromAnUnfinishedBatch) {
  const auto with_snapshots = kind(2);
  auto sum = entity(with_snapshots);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1, 2}))));
  ASSERT_EQ(newest_snapshot(), 2u);
  put_foreign(3, {{.index = 0, .last = 1}});
  put_foreign(5);
  const auto whole = recovered(with_snapshots);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->total, 8);
  delete_to(5);  // also what no snapshot has
  const auto lost = recovered(with_snapshots);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, Failure::Kind::unreadable);
  EXPECT_NE(lost.error().message.find("events 3 to 5"), std::string::npos) << lost.error().message;
}

TEST_F(EntityTest, DoesNotTakeEventsForAllOfWhichSomeAreMarkedAsDeleted) {
  const journal::Options keys{.table = "keys", .layout = journal::LayoutKind::keys};
  ASSERT_TRUE(wait(store::prepare_tables(engine_, journal::tables_of(keys, ""), store::Missing::create)));
  journal::Parts parts(store_, clock_, keys, "", false);
  const Journals journals{parts.journal, parts.snapshots, clock_};
  Entity<Sum, Added> sum(journals, "sums", "k", plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1, 2, 3}))));
  for (const uint64_t number : {1u, 3u}) {
    // By a program that says so nowhere else.
    const auto key = parts.layout->key_of({"sums", "k"}, number);
    ASSERT_TRUE(wait(engine_.update_item(store::Update("keys", key).set("deleted", "true"))));
    const auto part = wait(sum.recover());
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().kind, Failure::Kind::unreadable);
    ASSERT_TRUE(wait(engine_.update_item(store::Update("keys", key).set("deleted", "false"))));
    ASSERT_TRUE(wait(sum.recover()));
    EXPECT_EQ(sum.state().total, 6);
  }
}

TEST_F(EntityTest, SaysWhichEventMakesNoSense) {
  journal::Append strange{.entity = {"sums", "a"}, .events = {{.payload = "1"}, {.payload = "two"}}};
  ASSERT_TRUE(wait(journal_.journal.append(std::move(strange))));
  const auto read = recovered(plain_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Failure::Kind::unreadable);
  EXPECT_EQ(read.error().message, "a of journal sums: event 2: 'two' is no number");
}

TEST_F(EntityTest, PersistsOnceWhereAnAnswerIsLost) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1}))));
  for (const auto& lost : std::vector<std::vector<Lost>>{{Lost::answer},
                                                         {Lost::request},
                                                         {Lost::request, Lost::answer},
                                                         {Lost::answer, Lost::request},
                                                         {Lost::cut_off},
                                                         {Lost::request, Lost::cut_off}}) {
    for (const auto* id : {"", "id"}) {
      store_.lose(lost);
      const auto command_id = *id ? id + std::to_string(sum.version()) : "";
      const auto done = wait(sum.execute(add({10, 20}), command_id));
      store_.lose({});
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_FALSE(done->repeated);
      EXPECT_EQ(done->events, 2u);
      EXPECT_EQ(done->version, sum.version());
      EXPECT_TRUE(sum.is_current());
    }
  }
  EXPECT_EQ(sum.version(), 25u);
  EXPECT_EQ(sum.state().total, 361);
  EXPECT_EQ(recovered(plain_)->total, 361);
  EXPECT_EQ(applied_, 25);
}

TEST_F(EntityTest, TellsALostAnswerFromSomebodyElsesEvents) {
  for (const auto lost : {Lost::answer, Lost::request, Lost::cut_off}) {
    auto sum = entity(plain_);
    ASSERT_TRUE(wait(sum.recover()));
    const auto before = sum.state().total;
    auto other = entity(plain_);
    store_.lose({lost});
    store_.after_loss = [&] {
      EXPECT_TRUE(std::async([&] { return wait(other.recover_and_execute(add({100}))); }).get());
    };
    const auto done = wait(sum.execute(add({1})));
    ASSERT_EQ(done.has_value(), lost != Lost::request);
    if (!done) EXPECT_EQ(done.error().kind, Failure::Kind::superseded);
    EXPECT_EQ(other.state().total, before + 100 + (done ? 1 : 0));
    EXPECT_EQ(recovered(plain_)->total, other.state().total);
  }
}

TEST_F(EntityTest, SaysThatItDoesNotKnowWhereNoAnswerComes) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({1}))));
  store_.lose(std::vector<Lost>(1000, Lost::request));
  const auto unknown = wait(sum.execute(add({10}), "ten"));
  store_.lose({});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Failure::Kind::unknown);
  EXPECT_FALSE(sum.is_current());
  EXPECT_EQ(sum.state().total, 1);
  for (const bool repeated : {false, true}) {
    const auto again = wait(sum.recover_and_execute(add({10}), "ten"));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->repeated, repeated);
    EXPECT_EQ(sum.state().total, 11);
  }
}

TEST_F(EntityTest, DoesACommandWithAnIdOnce) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  ASSERT_TRUE(wait(sum.execute(add({10}), "fill")));
  ASSERT_TRUE(wait(sum.execute(take(10), "empty")));
  for (auto* instance : {&sum, static_cast<Entity<Sum, Added>*>(nullptr)}) {
    auto later = entity(plain_);  // after a restart
    auto& asked = instance ? *instance : later;
    const auto again = wait(asked.recover_and_execute(add({10}), "fill"));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(again->version, 1u);
    EXPECT_EQ(again->events, 0u);
    // It could not be done now.
    const auto taken = wait(asked.recover_and_execute(take(10), "empty"));
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_TRUE(taken->repeated);
    // Nor does it come to the same.
    const auto other = wait(asked.recover_and_execute(add({1, 2, 3}), "fill"));
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE(other->repeated);
    EXPECT_TRUE(asked.is_current());
    EXPECT_EQ(asked.state().total, 0);
  }
  EXPECT_EQ(wait(sum.recover_and_execute(take(10), "another")).error().kind, Failure::Kind::refused);
  EXPECT_EQ(recovered(plain_)->total, 0);
}

TEST_F(EntityTest, DoesNotTakeTheSameCommandOfAnotherInstanceForItsOwn) {
  for (const std::string event_id : {"", "chosen by the program"}) {
    auto made = kind();
    made.encode = [&](Added number) {
      return journal::NewEvent{.payload = std::to_string(number), .id = event_id};
    };
    auto stale = entity(made);
    ASSERT_TRUE(wait(stale.recover()));
    const auto before = stale.state().total;
    const auto command = "for " + std::to_string(before);
    auto other = entity(made);
    ASSERT_TRUE(wait(other.recover_and_execute(add({5}), command)));
    // As many events, but others: it has decided otherwise.
    const auto done = wait(stale.execute(add({7}), command));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->repeated);
    EXPECT_EQ(done->events, 0u);
    EXPECT_EQ(done->version, other.version());
    EXPECT_EQ(stale.state().total, before);
    EXPECT_FALSE(stale.is_current());
    EXPECT_EQ(recovered(made)->total, before + 5);
  }
}

TEST_F(EntityTest, KnowsACommandAgainThatComesToNothingNow) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  const Command fill = [](const Sum& now) -> Decision<Added> {
    if (now.total == 10) return std::vector<Added>{};
    return std::vector<Added>{10 - now.total};
  };
  ASSERT_TRUE(wait(sum.execute(fill, "fill")));
  const auto again = wait(sum.execute(fill, "fill"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(again->version, 1u);
  const auto another = wait(sum.execute(fill, "another"));
  ASSERT_TRUE(another) << another.error().message;
  EXPECT_FALSE(another->repeated);
}

TEST_F(EntityTest, IsDoneWithACommandWhoseSnapshotThrows) {
  auto with_snapshots = kind(1);
  with_snapshots.save = [](const Sum&) -> std::string { throw std::runtime_error("a bug"); };
  auto sum = entity(with_snapshots);
  ASSERT_TRUE(wait(sum.recover()));
  for (uint64_t version : {1u, 2u}) {
    const auto done = wait(sum.execute(add({1})));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->version, version);
  }
  EXPECT_EQ(sum.state().total, 2);
  EXPECT_EQ(newest_snapshot(), 0u);
}

TEST_F(EntityTest, GoesOnAfterACommandThatThrows) {
  auto sum = entity(plain_);
  ASSERT_TRUE(wait(sum.recover()));
  const auto broken = [](const Sum&) -> Decision<Added> { throw std::runtime_error("a bug"); };
  EXPECT_THROW(wait(sum.execute(broken)), std::runtime_error);
  EXPECT_TRUE(wait(sum.execute(add({1}))));
}

TEST_F(EntityTest, RunsCommandsOneAfterTheOther) {
  constexpr int kCommands = 100;
  Sums sums(journals_, "sums", kind(7));
  net::IoThreads threads(4);
  std::atomic<int> deciding = 0;
  std::vector<int64_t> seen;  // by one command at a time
  std::vector<std::future<Outcome<Done>>> results;
  for (int i = 0; i < kCommands; ++i) {
    const auto decide = [&](const Sum& sum) -> Decision<Added> {
      EXPECT_EQ(++deciding, 1);
      seen.push_back(sum.total);
      --deciding;
      return std::vector<Added>{1};
    };
    results.push_back(boost::asio::co_spawn(threads.at(static_cast<size_t>(i) % 4), sums.execute("a", decide),
                                            boost::asio::use_future));
  }
  std::set<uint64_t> versions;
  for (auto& result : results) {
    const auto done = result.get();
    ASSERT_TRUE(done) << done.error().message;
    versions.insert(done->version);
  }
  EXPECT_EQ(versions.size(), static_cast<size_t>(kCommands));
  EXPECT_EQ(*versions.rbegin(), static_cast<uint64_t>(kCommands));
  for (int i = 0; i < kCommands; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_EQ(wait(sums.read("a"))->total, kCommands);
}

TEST_F(EntityTest, RunsCommandsToSeveralEntitiesSideBySide) {
  Sums sums(journals_, "sums", plain_);
  net::IoThreads threads(1);
  ASSERT_TRUE(wait(sums.read("a")));
  ASSERT_TRUE(wait(sums.read("b")));
  store_.hold = true;
  std::vector<std::future<Outcome<Done>>> results;
  for (const auto* pid : {"a", "a", "b", "b"})
    results.push_back(
        boost::asio::co_spawn(threads.at(0), sums.execute(pid, add({1})), boost::asio::use_future));
  // One of each is at the store at the same time.
  while (store_.held < 2) std::this_thread::yield();
  store_.hold = false;
  for (auto& result : results) EXPECT_TRUE(result.get());
  EXPECT_EQ(wait(sums.read("a"))->total, 2);
  EXPECT_EQ(wait(sums.read("b"))->total, 2);
}

TEST_F(EntityTest, LeavesMemoryWhenItIsIdle) {
  Sums sums(journals_, "sums", plain_, {.at_most = 3, .idle = milliseconds{1000}});
  ASSERT_TRUE(wait(sums.execute("a", add({1}))));
  clock_.advance(milliseconds{600});
  ASSERT_TRUE(wait(sums.execute("b", add({2}))));
  clock_.advance(milliseconds{399});
  sums.passivate();
  EXPECT_EQ(sums.in_memory(), 2u);
  clock_.advance(milliseconds{1});
  sums.passivate();
  EXPECT_EQ(sums.in_memory(), 1u);

  applied_ = 0;
  EXPECT_EQ(wait(sums.read("b"))->total, 2);
  EXPECT_EQ(applied_, 0);  // it was there
  EXPECT_EQ(wait(sums.read("a"))->total, 1);
  EXPECT_EQ(applied_, 1);
}

TEST_F(EntityTest, LeavesMemoryWhenThereAreTooMany) {
  Sums sums(journals_, "sums", plain_, {.at_most = 2});
  for (const auto* pid : {"a", "b", "a", "c"}) ASSERT_TRUE(wait(sums.execute(pid, add({1}))));
  EXPECT_EQ(sums.in_memory(), 2u);
  applied_ = 0;
  ASSERT_TRUE(wait(sums.read("a")));
  EXPECT_EQ(applied_, 0);
  ASSERT_TRUE(wait(sums.read("b")));
  EXPECT_EQ(applied_, 1);
}

TEST_F(EntityTest, StaysInMemoryWhileACommandRuns) {
  Sums sums(journals_, "sums", plain_, {.at_most = 1, .idle = milliseconds{10}});
  net::IoThreads threads(1);
  ASSERT_TRUE(wait(sums.read("a")));
  store_.hold = true;
  auto running = boost::asio::co_spawn(threads.at(0), sums.execute("a", add({1})), boost::asio::use_future);
  while (store_.held < 1) std::this_thread::yield();
  clock_.advance(milliseconds{1000});
  ASSERT_TRUE(wait(sums.read("b")));
  sums.passivate();
  EXPECT_EQ(sums.in_memory(), 1u);  // b has gone
  store_.hold = false;
  EXPECT_TRUE(running.get());
  EXPECT_EQ(wait(sums.read("a"))->total, 1);
}

}  // namespace
}  // namespace tabella

// Long random sequences of operations on a journal over the engine and on the model beside it: several
// entities, several processes of which some die, other programs in the same tables, and time that passes.
// What the journal answers and what is to be read of it is compared after each step, and the order of all
// now and then. In the second mode answers get lost and transactions conflict: whatever is said to be made or
// not made is so, and what is said to be unknown is one of the two.
//
// TABELLA_MODEL_STEPS and TABELLA_MODEL_SEED make it longer or other.
#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "engine/engine.h"
#include "journal/faulty_store.h"
#include "journal/foreign_rows.h"
#include "journal/journal_model.h"
#include "journal/order.h"
#include "journal/placement.h"
#include "journal/replay.h"
#include "journal/snapshots.h"
#include "store/rows.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::journal {
namespace {

using std::chrono::seconds;
using test::Fault;
using test::run;

int64_t from_environment(const char* name, int64_t otherwise) {
  const auto text = environment_variable(name);
  return text.empty() ? otherwise : std::stoll(text);
}

std::string said(const store::Result<AppendOutcome>& outcome) {
  if (!outcome) return outcome.error().code == store::ErrorCode::validation ? "refused" : "failed";
  if (const auto* appended = std::get_if<Appended>(&*outcome))
    return fmt::format("{}-{}{}", appended->first, appended->last, appended->repeated ? " again" : "");
  const auto& conflict = std::get<Conflict>(*outcome);
  const auto kind = conflict.kind == Conflict::Kind::version ? "version"
                    : conflict.kind == Conflict::Kind::epoch ? "epoch"
                                                             : "batch";
  return fmt::format("{} {}", kind, conflict.actual);
}

struct Mode {
  Kind kind;
  bool is_unlucky;
  int seed;
};

void PrintTo(const Mode& mode, std::ostream* out) {
  *out << name_of(mode.kind) << (mode.is_unlucky ? " with faults" : "");
}

class JournalModel : public testing::TestWithParam<Mode> {
 protected:
  struct Process {
    Process(store::Store& behind, const Clock& clock, const Layout& layout)
        : store(behind), journal(store, clock, layout, {.heads_table = "heads"}) {}
    test::FaultyStore store;
    Journal journal;
  };

  JournalModel()
      : seed_(static_cast<unsigned>(from_environment("TABELLA_MODEL_SEED", 0) + GetParam().seed)),
        random_(seed_),
        layout_(layout_of(GetParam().kind, "events")),
        journal_(engine_, clock_, *layout_, {.heads_table = "heads"}),
        order_(engine_, clock_, journal_, "order"),
        placement_(engine_, clock_, journal_, "order", {}),
        snapshots_(engine_, "snapshots") {
    const auto prepared = run(store::prepare_tables(
        engine_, {layout_->plan(), Heads::plan("heads"), Order::plan("order"), Snapshots::plan("snapshots")},
        store::Missing::create));
    EXPECT_TRUE(prepared);
    for (int i = 0; i < 3; ++i) processes_.push_back(std::make_unique<Process>(engine_, clock_, *layout_));
    RecordProperty("seed", static_cast<int>(seed_));
  }

  // --- chance

  uint64_t below(uint64_t most) { return random_() % most; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  uint64_t any_number(const ModelEntity& entity) { return below(entity.highest() + 3); }
  Entity any_entity() { return {.journal = "bank", .pid = fmt::format("account-{}", below(4))}; }
  ModelEntity& model(const Entity& entity) { return models_[entity.pid]; }
  size_t any_size() {
    static constexpr size_t kSizes[] = {1, 1, 1, 2, 3, 5, 97, 98, 100, 101, 150, 330};
    return one_in(4) ? kSizes[below(std::size(kSizes))] : 1 + below(5);
  }

  // A process at which nothing goes wrong, or something does.
  Process& any_process() {
    auto& process = *processes_[below(processes_.size())];
    if (GetParam().is_unlucky)
      process.store.decide([this](test::FaultyStore::Call call) {
        if (!call.writes) return one_in(200) ? Fault::refuse : Fault::none;
        if (one_in(12)) return Fault::lose_answer;
        if (one_in(12)) return Fault::lose_request;
        return one_in(12) ? Fault::conflict : Fault::none;
      });
    else
      process.store.decide({});
    return process;
  }

  Append any_append(const Entity& entity) {
    auto& known = model(entity);
    Append append{.entity = entity};
    const auto size = any_size();
    for (size_t i = 0; i < size; ++i) append.events.push_back({.payload = fmt::format("{}", ++payloads_)});
    if (one_in(6)) append.events.front().tags = {"blue"};
    switch (below(6)) {
      case 0: append.expected = Expected::none(); break;
      case 1: append.expected = Expected::version(any_number(known)); break;
      case 2:
      case 3: append.expected = Expected::version(known.highest()); break;
      default: break;
    }
    if (one_in(4)) append.epoch = known.epoch + below(3) - (known.epoch > 0 ? 1 : 0);
    if (one_in(4)) append.batch_id = fmt::format("batch-{}", below(20));
    if (one_in(6)) append.time_to_live = seconds(1 + below(300));
    return append;
  }

  // --- steps

  void append() {
    const auto entity = any_entity();
    finish_stagings(entity);
    const auto append = any_append(entity);
    compare_append(append, run(any_process().journal.append(append)));
  }

  // What the journal has said of an append is what the model says, now.
  void compare_append(const Append& append, const store::Result<AppendOutcome>& outcome) {
    auto& known = model(append.entity);
    const auto answer = said(outcome);
    if (answer == "refused") {  // which may be said before events of others are seen
      auto copy = known;
      const auto expected = copy.append(append, clock_.now());
      ASSERT_TRUE(append.time_to_live && (expected == "refused" || expected.starts_with("version")))
          << expected;
      return;
    }
    if (answer != "failed") {
      ASSERT_EQ(answer, known.append(append, clock_.now()));
      return;
    }
    ASSERT_TRUE(GetParam().is_unlucky) << outcome.error().message;
    const auto there = run(journal_.extent(append.entity)).value();
    const bool made = there.highest != known.highest();
    ASSERT_TRUE(!made || outcome.error().unsure) << outcome.error().message;
    if (made) known.apply(append, clock_.now());
    note_epoch(known, there.epoch, append.epoch);
  }

  // Whoever begins to stage has its epoch noted, whatever comes of it.
  static void note_epoch(ModelEntity& known, uint64_t epoch, std::optional<uint64_t> given) {
    if (given && epoch == *given) known.epoch = std::max(known.epoch, epoch);
    ASSERT_EQ(epoch, known.epoch);
  }

  // One that dies in the middle of a large append: nobody ever sees anything of it.
  void die_staging() {
    const auto entity = any_entity();
    finish_stagings(entity);
    Append append{.entity = entity, .epoch = model(entity).epoch + below(2)};
    append.events.resize(330, {.payload = "never"});
    auto& process = *processes_[below(processes_.size())];
    const auto at = static_cast<int>(below(5));
    process.store.decide(
        [at](auto call) { return call.writes && call.number == at ? Fault::die : Fault::none; });
    ASSERT_EQ(said(run(process.journal.append(append))), "failed");
    if (at > 0) model(entity).epoch = *append.epoch;
  }

  // Who sleeps in the middle of an append, small or large, while others go on.
  void sleep_in_append() {
    const auto entity = any_entity();
    finish_stagings(entity);
    auto append = any_append(entity);
    append.time_to_live.reset();
    if (one_in(2)) append.events.resize(330, append.events.front());
    auto& process = *processes_[0];
    const auto at = static_cast<int>(below(5));
    process.store.decide([&, at](auto call) {
      if (!call.writes || call.number != at) return Fault::none;
      finish_stagings(entity);
      note_epoch(model(entity), run(journal_.extent(entity)).value().epoch, append.epoch);
      auto other = any_append(entity);
      other.time_to_live.reset();
      compare_append(other, run(processes_[1]->journal.append(other)));
      return Fault::none;
    });
    processes_[1]->store.decide({});
    const auto outcome = run(process.journal.append(append));
    process.store.decide({});
    compare_append(append, outcome);
  }

  // By their silence.
  void finish_stagings(const Entity& entity) {
    const auto head = run(journal_.heads().find(entity)).value();
    if (!head || !head->staging) return;
    ASSERT_FALSE(run(journal_.finish_work(entity)).value());
    clock_.advance(seconds(6));
    ASSERT_TRUE(run(journal_.finish_work(entity)).value());
  }

  void append_foreign() {
    const auto entity = any_entity();
    finish_stagings(entity);
    auto& known = model(entity);
    const auto put = [&](uint64_t number, std::optional<Event::BatchPlace> place = {}) {
      for (auto& row : foreign_rows(GetParam().kind, entity, number, place))
        ASSERT_TRUE(run(engine_.put_item(store::Put("events", std::move(row)))));
    };
    const auto first = known.highest() + 1;
    const auto size = 1 + below(4);
    const bool in_batch = GetParam().kind == Kind::blocks && size > 1 && one_in(2);
    const auto written = in_batch && one_in(2) ? 1 + below(size - 1) : size;  // it died behind these
    for (uint64_t i = 0; i < written; ++i) {
      if (in_batch)
        put(first + i, Event::BatchPlace{.index = i, .last = size - 1});
      else
        put(first + i);
      known.add_foreign(std::to_string(first + i), written == size);
    }
    if (written == size) return;
    put(first + written);
    known.add_foreign(std::to_string(first + written), true);
  }

  void remove() {
    const auto entity = any_entity();
    auto& known = model(entity);
    const auto to = one_in(3) ? known.highest() : below(known.highest() + 3);
    const auto deleted = run(any_process().journal.delete_to(entity, to, one_in(2)));
    if (deleted) {
      ASSERT_EQ(*deleted, known.delete_to(to));
      return;
    }
    ASSERT_TRUE(GetParam().is_unlucky) << deleted.error().message;
    const auto head = run(journal_.heads().find(entity)).value();
    if (head && head->deleted_to > known.deleted_to()) ASSERT_EQ(head->deleted_to, known.delete_to(to));
  }

  void take_epoch() {
    const auto entity = any_entity();
    const auto taken = run(any_process().journal.take_epoch(entity));
    const auto there = run(journal_.extent(entity)).value().epoch;
    auto& known = model(entity).epoch;
    if (taken) {
      ASSERT_EQ(*taken, there);
      ASSERT_GT(*taken, known);
    }
    ASSERT_LE(there, known + 1);
    ASSERT_TRUE(taken || GetParam().is_unlucky);
    known = there;
  }

  void confirm() {
    const auto entity = any_entity();
    auto& known = model(entity);
    const auto number = any_number(known);
    if (number > 0 && number <= known.highest() && !known.event(number).is_shown) return;
    processes_[2]->store.decide({});
    const std::vector<std::string> by = {fmt::format("channel-{}", below(3))};
    ASSERT_EQ(run(processes_[2]->journal.confirm(entity, number, by)).value(),
              known.confirm(number, by, clock_.now()));
  }

  void snapshot() {
    const auto entity = any_entity();
    auto& known = model(entity);
    const auto from = any_number(known);
    const auto to = from + below(50);
    if (one_in(5)) {
      const auto gone =
          std::erase_if(known.snapshots, [&](const auto& s) { return from <= s.first && s.first <= to; });
      ASSERT_EQ(run(snapshots_.remove(entity, {.from = from, .to = to})).value(), gone);
    } else {
      known.snapshots[from] = fmt::format("{}", ++payloads_);
      ASSERT_TRUE(run(
          snapshots_.save(entity, {.number = from, .time = clock_.now(), .payload = known.snapshots[from]})));
    }
    const auto newest = run(snapshots_.newest(entity, {.to = to})).value();
    const auto behind = known.snapshots.upper_bound(to);
    ASSERT_EQ(newest.has_value(), behind != known.snapshots.begin());
    if (newest) {
      ASSERT_EQ(newest->number, std::prev(behind)->first);
      ASSERT_EQ(newest->payload, std::prev(behind)->second);
    }
  }

  void step() {
    const auto before = clock_.now();
    const auto choice = below(20);
    SCOPED_TRACE(choice);
    switch (choice) {
      case 0:
      case 1: remove(); break;
      case 2: take_epoch(); break;
      case 3: confirm(); break;
      case 4: snapshot(); break;
      case 5:
      case 6: append_foreign(); break;
      case 7: die_staging(); break;
      case 8:
        if (!GetParam().is_unlucky) sleep_in_append();
        break;
      case 9: clock_.advance(std::chrono::milliseconds(below(60'000))); break;
      case 10: ASSERT_TRUE(run(journal_.adopt(any_entity()))); break;
      default: append();
    }
    if (clock_.now() != before && one_in(2)) clock_.advance(seconds(below(100)));
  }

  // --- comparing

  std::vector<Event> events_of(const Entity& entity, Range range) {
    auto replay = journal_.replay(entity, range);
    std::vector<Event> all;
    while (true) {
      auto some = run(replay.next());
      if (!some) {
        ADD_FAILURE() << some.error().message;
        return all;
      }
      if (some->empty()) return all;
      std::ranges::move(*some, std::back_inserter(all));
    }
  }

  static std::vector<std::string> payloads_of(const std::vector<Event>& events) {
    std::vector<std::string> payloads;
    for (const auto& event : events) payloads.emplace_back(event.payload());
    return payloads;
  }

  void compare(const Entity& entity) {
    SCOPED_TRACE(entity.pid);
    const auto& known = model(entity);
    const auto now = clock_.now();
    const auto there = run(journal_.extent(entity)).value();
    ASSERT_EQ(there.highest, known.highest());
    ASSERT_EQ(there.lowest, known.lowest(now));
    ASSERT_EQ(there.epoch, known.epoch);
    const auto from = any_number(known);
    const auto to = one_in(3) ? UINT64_MAX : from + below(250);
    auto expected = known.read(from, to, now);
    ASSERT_EQ(payloads_of(events_of(entity, {.from = from, .to = to})), expected) << from << "-" << to;
    std::ranges::reverse(expected);
    ASSERT_EQ(payloads_of(events_of(entity, {.from = from, .to = to, .direction = Direction::backward})),
              expected)
        << from << "-" << to;
  }

  void compare_whole(const Entity& entity) {
    SCOPED_TRACE(entity.pid);
    const auto& known = model(entity);
    const auto events = events_of(entity, {});
    ASSERT_EQ(payloads_of(events), known.read(1, UINT64_MAX, clock_.now()));
    for (const auto& event : events) {
      ASSERT_EQ(event.payload(), known.event(event.number()).payload);
      const auto confirmations = event.confirmations();
      ASSERT_EQ(std::set(confirmations.begin(), confirmations.end()),
                known.event(event.number()).confirmations);
    }
  }

  // Hands the records of the heads' stream on, as far as there are any.
  void place() {
    const auto arn = *run(engine_.describe_table("heads"))->stream_arn;
    for (const auto& shard : run(engine_.describe_stream({.arn = arn}))->shards) {
      auto& read_to = shards_[shard.id];
      store::GetShardIteratorRequest from{.arn = arn, .shard = shard.id};
      if (!read_to.empty()) {
        from.type = store::IteratorType::after_sequence_number;
        from.sequence = read_to;
      }
      for (std::optional<std::string> next = run(engine_.get_shard_iterator(from)).value(); next;) {
        auto page =
            run(engine_.get_records({.iterator = *next, .limit = 1 + static_cast<int64_t>(below(100))}));
        ASSERT_TRUE(page) << page.error().message;
        if (page->records.empty()) break;
        // Now and then they come twice.
        for (int times = one_in(5) ? 2 : 1; times > 0; --times) run(hand_on(shard.id, page->records)).value();
        read_to = page->records.back().sequence;
        next = page->next;
      }
    }
  }
  store::Async<void> hand_on(std::string shard, std::vector<store::StreamRecord> records) {
    co_await placement_.handle(shard, records);
    co_return store::Result<void>();
  }

  // Every event that is there has one position, and those of an entity are in the order of their numbers.
  void compare_order() {
    for (auto& [pid, known] : models_) ASSERT_TRUE(run(journal_.adopt({.journal = "bank", .pid = pid})));
    place();
    std::map<std::string, std::vector<std::string>> found;
    uint64_t position = 0;
    uint64_t given_out = 0;
    const auto last = run(order_.last("bank")).value();
    for (uint64_t after = 0; after < last;) {
      const auto page = run(order_.read("bank", after, 1 + below(300), {})).value();
      for (const auto& placed : page.events) {
        ASSERT_GT(placed.position, position);
        position = placed.position;
        found[placed.pid].emplace_back(placed.event.payload());
      }
      ASSERT_GT(page.position, after);
      after = page.position;
    }
    for (const auto& [pid, known] : models_) {
      SCOPED_TRACE(pid);
      given_out += known.highest();
      ASSERT_EQ(found[pid], known.read(1, UINT64_MAX, clock_.now()));
    }
    ASSERT_EQ(last, given_out);
  }

  const unsigned seed_;
  std::mt19937_64 random_;
  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path(), .durability = engine::Durability::relaxed}, clock_};
  const std::unique_ptr<Layout> layout_;
  Journal journal_;  // at which nothing goes wrong
  Order order_;
  Placement placement_;
  Snapshots snapshots_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::string, ModelEntity> models_;
  std::map<std::string, std::string> shards_;  // of the heads' stream: up to where each was read
  uint64_t payloads_ = 0;
};

TEST_P(JournalModel, DoesWhatTheModelSays) {
  SCOPED_TRACE(fmt::format("TABELLA_MODEL_SEED={}", seed_ - static_cast<unsigned>(GetParam().seed)));
  const auto steps = from_environment("TABELLA_MODEL_STEPS", 800);
  for (int64_t i = 1; i <= steps && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    step();
    if (!HasFailure()) compare(any_entity());
    if (i % 20 == 0)
      for (int n = 0; n < 4 && !HasFailure(); ++n)
        compare_whole({.journal = "bank", .pid = fmt::format("account-{}", n)});
    if (i % 100 == 0 && !HasFailure()) compare_order();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, JournalModel,
                         testing::Values(Mode{Kind::blocks, false, 1}, Mode{Kind::blocks, false, 2},
                                         Mode{Kind::keys, false, 3}, Mode{Kind::blocks, true, 4},
                                         Mode{Kind::blocks, true, 5}, Mode{Kind::keys, true, 6}),
                         [](const auto& parameter) {
                           const auto& mode = parameter.param;
                           return fmt::format("{}{}_{}", name_of(mode.kind),
                                              mode.is_unlucky ? "_unlucky" : "", mode.seed);
                         });

}  // namespace
}  // namespace tabella::journal

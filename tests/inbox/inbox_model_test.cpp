// Long random sequences of all that can be done with an inbox, by several users and processes, and beside it
// on a model that counts by looking at everything. After each step counts, feeds, and what an open page knows
// from the events that it was sent, are compared. Time passes, messages expire, rows are removed by the
// store's time to live, timers fire twice; in the second mode answers get lost and transactions conflict, in
// the third processes are killed in the middle of what they do, and others do it again.
//
// On the engine or, with CONTRACT_ON=remote_to_tabella, on another process. TABELLA_MODEL_STEPS and
// TABELLA_MODEL_SEED make it longer or other.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "contract/subjects.h"
#include "engine/engine.h"
#include "inbox/boxes.h"
#include "inbox/posts.h"
#include "inbox/snoozes.h"
#include "journal/faulty_store.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::inbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;
using test::run;

const Place kPlace{.tenant = "shop", .inbox = "bell"};
const std::vector<std::string> kUsers{"ann", "bob", "cy"};
const std::vector<std::string> kCategories{"", "news", "orders", "team"};
constexpr size_t kCrowd = Posts::kFew;  // with whom a post is carried out by a timer

int64_t number_from_environment(const char* name, int64_t otherwise) {
  const auto text = environment_variable(name);
  return text.empty() ? otherwise : std::stoll(text);
}

// A message as the model has it for one user.
struct Seen {
  bool read = false;
  bool seen = false;
  bool archived = false;
  bool gone = false;  // redacted for this user
  int64_t snoozed_until = 0;
  int64_t since = 0;  // microseconds: arrived, or marked as unread
  bool operator==(const Seen&) const = default;
};

struct Sent {
  std::string category;
  int64_t expires = 0;
  bool everyone = false;
  bool redacted = false;
  bool opt_in = false;
  std::string key;
  std::string group;
  std::set<std::string> users;
};

struct Model {
  std::map<std::string, Sent> sent;                         // by id
  std::map<std::string, std::map<std::string, Seen>> seen;  // by user and id
  std::set<std::string> joined;
  std::map<std::string, std::map<std::string, bool>> bell;  // by user and category

  bool wants(const std::string& user, const Sent& message) {
    auto& his = bell[user];
    if (const auto own = his.find(message.category); !message.category.empty() && own != his.end())
      return own->second;
    const auto all = his.find("*");
    return all != his.end() ? all->second : !message.opt_in;
  }
  void join(const std::string& user) {
    if (!joined.insert(user).second) return;
    for (const auto& [id, sent_one] : sent)
      if (sent_one.everyone && wants(user, sent_one)) seen[user][id] = {.read = true, .seen = true};
  }
  // Those that are there for the user.
  std::map<std::string, Seen> live(const std::string& user, int64_t second) const {
    std::map<std::string, Seen> all;
    const auto his = seen.find(user);
    if (his == seen.end()) return all;
    for (const auto& [id, state] : his->second) {
      const auto& message = sent.at(id);
      if (!message.redacted && !state.gone && message.expires > second) all[id] = state;
    }
    return all;
  }
};

// What a page holds that was sent events all along.
struct Page {
  struct Held {
    int64_t arrived = 0;
    int64_t changed = 0;
    int64_t unread_at = 0;
    bool everyone = false;
    bool read = false;
    bool seen = false;
    bool archived = false;
    bool snoozed = false;
    int64_t expires = 0;
    std::string category;
  };
  Mark since;
  std::map<std::string, Held> held;

  // As the bell does it (web/inbox/messages.ts).
  void take(const Entry& entry) {
    auto& held_one = held[entry.message->id];
    if (held_one.changed > entry.changed) return;
    held_one = {.arrived = entry.state.arrived,
                .changed = entry.changed,
                .unread_at = entry.state.unread_at,
                .everyone = entry.state.receipt,
                .read = !entry.unread,
                .seen = !entry.unseen,
                .archived = entry.state.archived_at.has_value(),
                .snoozed = entry.state.snoozed_until.has_value(),
                .expires = entry.message->expires,
                .category = entry.state.category};
  }
  void take(const Marks& marks) {
    for (auto& [id, one] : held) {
      const auto covers = [&](const Mark& mark) {
        return one.arrived <= (one.everyone ? mark.broadcast : mark.own);
      };
      const auto& mark = marks.read_of(one.category);
      one.read = one.read || (covers(mark) && one.unread_at <= mark.own);
      one.seen = one.seen || one.read || covers(marks.seen);
    }
  }
};

enum class Luck { good, bad, killed };
struct Mode {
  Luck luck;
  int seed;
};
void PrintTo(const Mode& mode, std::ostream* out) {
  *out << (mode.luck == Luck::good ? "plain" : mode.luck == Luck::bad ? "faults" : "killed") << mode.seed;
}

class InboxModel : public testing::TestWithParam<Mode> {
 protected:
  struct Process {
    Process(store::Store& behind, const Clock& clock)
        : store(behind),
          sequence(clock),
          broadcasts(store, clock, "inbox"),
          boxes(store, clock, broadcasts, sequence, "inbox"),
          settings(store, clock, "inbox"),
          schedule(behind, clock, {.table = "timers"}),
          digests(store, clock, settings, schedule, "inbox"),
          posts({.store = store,
                 .clock = clock,
                 .boxes = boxes,
                 .sequence = sequence,
                 .schedule = schedule,
                 .digests = digests},
                "inbox", [](const std::string&) {}),
          snoozes(boxes, clock, schedule, [](const std::string&) {}) {}
    boost::asio::awaitable<void> carry_on(const schedule::Firing& firing) { return posts.carry_on(firing); }
    boost::asio::awaitable<void> wake(const schedule::Firing& firing) { return snoozes.wake(firing); }

    test::FaultyStore store;
    Sequence sequence;
    Broadcasts broadcasts;
    Boxes boxes;
    Settings settings;
    schedule::Schedule schedule;
    Digests digests;
    Posts posts;
    Snoozes snoozes;
  };

  InboxModel()
      : random_(static_cast<unsigned>(number_from_environment("TABELLA_MODEL_SEED", 0) + GetParam().seed)) {
    if (environment_variable("CONTRACT_ON") == "remote_to_tabella") {
      subject_ = contract::make_remote_to_tabella();
      clock_.advance(std::chrono::duration_cast<milliseconds>(subject_->clock().now() - clock_.now()));
    }
    auto& behind = subject_ ? subject_->store() : engine_;
    EXPECT_TRUE(run(store::prepare_tables(behind, {plan_inbox_table("inbox"), schedule::plan("timers")},
                                          store::Missing::create)));
    for (int i = 0; i < 2; ++i) processes_.push_back(std::make_unique<Process>(behind, clock_));
  }

  int any(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  template <class Container>
  const auto& one_of(const Container& container) {
    return container[static_cast<size_t>(any(static_cast<int>(container.size())))];
  }
  Process& process() { return *one_of(processes_); }
  int64_t second() const { return epoch_milliseconds(clock_.now()) / 1000; }
  int64_t microsecond() const { return epoch_milliseconds(clock_.now()) * 1000; }
  static Box box_of(const std::string& user) { return {.place = kPlace, .user = user}; }

  bool killed() const { return GetParam().luck == Luck::killed; }

  // Faults that pass, and that whoever calls is not to notice; or processes that are killed.
  void set_faults() {
    for (auto& each : processes_)
      each->store.decide([this](test::FaultyStore::Call call) {
        if (killed()) return any(15) == 0 ? Fault::die : Fault::none;
        if (GetParam().luck == Luck::good || !call.writes || any(6) > 0) return Fault::none;
        const Fault faults[] = {Fault::lose_answer, Fault::lose_request, Fault::conflict};
        return faults[any(3)];
      });
  }
  void end_faults() {
    for (auto& each : processes_) each->store.decide({});
  }

  // Who calls a process that is killed calls another one, with the same.
  template <class Call>
  auto persist(Call call) {
    while (true) {
      auto result = run(call(process()));
      if (result || !killed()) return result;
      set_faults();
    }
  }

  std::vector<std::string> some_ids(const std::string& user) {
    std::vector<std::string> ids;
    for (const auto& [id, state] : model_.seen[user])
      if (any(4) == 0) ids.push_back(id);
    std::ranges::shuffle(ids, random_);
    if (ids.size() > 5) ids.resize(static_cast<size_t>(any(20) == 0 ? 60 : 5));
    if (any(10) == 0) ids.push_back(make_message_id(microsecond()));
    return ids;
  }

  // The user's first visit.
  void come(const std::string& user) {
    EXPECT_TRUE(persist([&](Process& by) { return by.boxes.sequence_of(box_of(user)); }));
    model_.join(user);
  }

  // The same change in both.
  template <class InModel>
  void change(const std::string& user, const Boxes::Change& change, InModel in_model) {
    come(user);
    const auto ids = some_ids(user);
    const auto live = model_.live(user, second());
    auto found = persist([&](Process& by) { return by.boxes.change(box_of(user), ids, change); }).value();
    std::vector<std::string> expected;
    for (const auto& id : std::set<std::string>(ids.begin(), ids.end()))
      if (live.contains(id)) {
        expected.push_back(id);
        in_model(model_.seen[user][id]);
      }
    std::ranges::sort(found);
    EXPECT_EQ(found, expected);
  }

  void arrive(const std::string& id, const Sent& sent) {
    model_.sent[id] = sent;
    if (sent.everyone) {
      for (const auto& user : model_.joined)
        if (model_.wants(user, sent)) model_.seen[user][id] = {.since = microsecond()};
      return;
    }
    for (const auto& user : sent.users) {
      if (!model_.wants(user, sent)) continue;
      model_.join(user);
      model_.seen[user][id] = {.since = microsecond()};
    }
  }

  void publish(bool later) {
    Publication publication{.place = kPlace, .users = {}};
    Sent sent{.category = one_of(kCategories), .everyone = any(3) == 0};
    for (const auto& user : kUsers)
      if (!sent.everyone && any(2) == 0) sent.users.insert(user);
    if (!sent.everyone && sent.users.empty()) sent.users.insert(kUsers[0]);
    publication.users.assign(sent.users.begin(), sent.users.end());
    const bool to_many = !sent.everyone && GetParam().luck != Luck::bad && any(60) == 0;
    for (size_t i = 0; to_many && i < kCrowd; ++i) publication.users.push_back(fmt::format("other{}", i));
    sent.opt_in = any(5) == 0;
    publication.content = {.category = sent.category, .everyone = sent.everyone, .opt_in = sent.opt_in};
    publication.content.message = item::encode(item::Value::map());
    publication.time_to_live = seconds(std::vector<int>{20, 300, 86400 * 30}[static_cast<size_t>(any(3))]);
    if (killed() || any(3) == 0) sent.key = publication.key = fmt::format("key{}", ++keys_);
    if (any(4) == 0) sent.group = publication.content.group = any_group();
    if (later) publication.deliver_at = clock_.now() + seconds(1 + any(60));
    const auto at = publication.deliver_at.value_or(clock_.now());
    sent.expires = epoch_milliseconds(at) / 1000 + publication.time_to_live.count();
    const auto published = persist([&](Process& by) { return by.posts.publish(publication); });
    ASSERT_TRUE(published) << published.error().message;
    const auto& id = published->post.id;
    EXPECT_TRUE(killed() || !published->repeated);
    if (!publication.key.empty() && any(2) == 0) {
      const auto again = persist([&](Process& by) { return by.posts.publish(publication); });
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(again->post.id, id);
      EXPECT_TRUE(again->repeated);
    }
    if (later) {
      pending_.push_back({at, id, sent});
      return;
    }
    for (int times = to_many ? 1 + any(2) : 0; times > 0; --times)
      fire_until_done(fmt::format("shop#bell#{}", id), &Process::carry_on);
    arrive(id, sent);
  }
  std::string any_group() { return fmt::format("group{}", any(5)); }

  // What is due now, once or twice, by any process.
  void fire_timers() {
    for (auto& [at, id, sent] : std::exchange(pending_, {})) {
      if (at > clock_.now()) {
        pending_.push_back({at, id, sent});
        continue;
      }
      // What has expired long before its timer comes is removed, and delivered to nobody.
      if (sent.expires + kGrace.count() <= second()) continue;
      for (int times = 1 + any(2); times > 0; --times)
        fire_until_done(fmt::format("shop#bell#{}", id), &Process::carry_on);
      arrive(id, sent);
    }
    for (auto& [at, user, id] : std::exchange(snoozed_, {})) {
      if (at > epoch_milliseconds(clock_.now())) {
        snoozed_.push_back({at, user, id});
        continue;
      }
      for (int times = 1 + any(2); times > 0; --times)
        fire_until_done(fmt::format("shop#bell#{}#{}", user, id), &Process::wake);
      auto& state = model_.seen[user][id];
      if (model_.live(user, second()).contains(id) && state.snoozed_until > 0 &&
          state.snoozed_until <= epoch_milliseconds(clock_.now())) {
        state.snoozed_until = 0;
        state.read = false;
        state.since = microsecond();
      }
    }
  }

  using Handler = boost::asio::awaitable<void> (Process::*)(const schedule::Firing&);
  bool fire(const std::string& payload, Handler handler) {
    const schedule::Firing firing{.timer = {"t", "k", clock_.now(), payload}};
    const auto done = run([](Process& by, auto handle, const schedule::Firing& fired) -> store::Async<void> {
      co_await (by.*handle)(fired);
      co_return store::Result<void>();
    }(process(), handler, firing));
    return done.has_value();
  }
  // A handler that fails is called again.
  void fire_until_done(const std::string& payload, Handler handler) {
    while (true) {
      try {
        if (fire(payload, handler)) return;
      } catch (const std::runtime_error&) {
        set_faults();
      }
    }
  }

  void snooze(const std::string& user) {
    come(user);
    const auto at = clock_.now() + seconds(1 + any(40));
    const auto milli = epoch_milliseconds(at);
    const auto ids = some_ids(user);
    const auto snoozed =
        persist([&](Process& by) { return by.snoozes.snooze(box_of(user), ids, time_at(milli)); });
    for (const auto& id : snoozed.value()) {
      model_.seen[user][id].snoozed_until = milli;
      snoozed_.push_back({milli, user, id});
    }
  }

  void mark_all(const std::string& user) {
    model_.join(user);
    const auto category =
        any(2) == 0 ? std::optional<std::string>() : one_of(std::vector<std::string>{"news", "orders"});
    ASSERT_TRUE(persist([&](Process& by) { return by.boxes.mark_read(box_of(user), category); }));
    for (auto& [id, state] : model_.seen[user])
      if (!category || model_.sent[id].category == *category) state.read = true;
  }

  void mark_until(const std::string& user) {
    model_.join(user);
    const auto until = clock_.now() - milliseconds(any(30'000)) + std::chrono::microseconds(900);
    ASSERT_TRUE(persist([&](Process& by) { return by.boxes.mark_read_until(box_of(user), until); }));
    const auto at = until.time_since_epoch() / std::chrono::microseconds(1);
    for (auto& [id, state] : model_.seen[user])
      if (state.since <= at) state.read = true;
  }

  void switch_bell(const std::string& user) {
    model_.join(user);
    const auto category = one_of(std::vector<std::string>{"*", "news", "orders"});
    const auto on = any(3) == 0 ? std::nullopt : std::optional(any(2) == 0);
    ASSERT_TRUE(persist(
        [&](Process& by) { return by.boxes.set_wishes(box_of(user), {{category, {{Channel::bell, on}}}}); }));
    if (on)
      model_.bell[user][category] = *on;
    else
      model_.bell[user].erase(category);
  }

  void redact(const std::string& user) {
    if (model_.sent.empty()) return;
    auto at = model_.sent.begin();
    std::advance(at, any(static_cast<int>(model_.sent.size())));
    const auto& id = at->first;
    if (at->second.expires + 86400 < second()) return;
    const auto& sent = at->second;
    if (!sent.key.empty() && !sent.redacted && sent.expires > second()) {
      const auto by_key = persist([&](Process& by) { return by.posts.select(kPlace, {.key = sent.key}); });
      EXPECT_EQ(by_key.value(), std::vector{id});
    }
    if (any(2) == 0) return redact_for_all(id);
    model_.join(user);
    const bool is_live = model_.live(user, second()).contains(id);
    EXPECT_TRUE(redact_until_done(id, {user}) || !is_live);
    if (is_live) model_.seen[user][id].gone = true;
  }

  bool redact_until_done(const std::string& id, const std::vector<std::string>& users) {
    const auto redact_once = [&] { return run(process().posts.redact(kPlace, id, users)); };
    auto redacted = redact_once();
    while (!redacted && GetParam().luck != Luck::good) {
      if (killed()) set_faults();
      redacted = redact_once();
    }
    EXPECT_TRUE(redacted) << redacted.error().message;
    return redacted.value_or(false);
  }

  void redact_for_all(const std::string& id) {
    EXPECT_TRUE(redact_until_done(id, {}));
    model_.sent[id].redacted = true;
    fire_until_done(fmt::format("shop#bell#{}", id), &Process::carry_on);  // its timer, if it has set one
  }

  void redact_group() {
    const auto group = any_group();
    const auto selected =
        persist([&](Process& by) { return by.posts.select(kPlace, {.group = group}); }).value();
    const std::set<std::string> ids(selected.begin(), selected.end());
    for (const auto& [id, sent] : std::map(model_.sent)) {
      if (sent.group != group || sent.redacted || sent.expires <= second()) continue;
      EXPECT_TRUE(ids.contains(id)) << id << " is not in " << group;
      redact_for_all(id);
    }
  }

  void step() {
    clock_.advance(milliseconds(1 + any(20)));
    set_faults();
    const auto& user = one_of(kUsers);
    const auto now = epoch_milliseconds(clock_.now());
    switch (any(17)) {
      case 0:
      case 1:
      case 2:
      case 3: return publish(false);
      case 4: return publish(true);
      case 5:
      case 6:
        return change(
            user,
            [now](State& state, int64_t) {
              if (!state.read_at) state.read_at = now;
            },
            [](Seen& state) { state.read = true; });
      case 7:
        return change(
            user,
            [](State& state, int64_t sequence) {
              state.read_at.reset();
              state.unread_at = sequence;
            },
            [this](Seen& state) {
              state.read = false;
              state.since = microsecond();
            });
      case 8:
        return change(
            user, [now](State& state, int64_t) { state.archived_at = now; },
            [](Seen& state) { state.archived = true; });
      case 9:
        return change(
            user, [](State& state, int64_t) { state.archived_at.reset(); },
            [](Seen& state) { state.archived = false; });
      case 10: return snooze(user);
      case 11: return mark_all(user);
      case 12: {
        const auto which = any(12);
        return which < 4 ? mark_until(user) : which < 11 ? redact(user) : redact_group();
      }
      case 13: {
        model_.join(user);
        ASSERT_TRUE(persist([&](Process& by) { return by.boxes.mark_seen(box_of(user)); }));
        for (auto& [id, state] : model_.seen[user]) state.seen = true;
        return;
      }
      case 14: return clock_.advance(seconds(any(20)));
      case 15: return switch_bell(user);
      default:
        if (any(40) == 0) clock_.advance(std::chrono::days(any(12)));
    }
  }

  // --- comparing

  bool shows(const Seen& state, const std::string& category, const FeedRequest& request) const {
    if (request.category && category != *request.category) return false;
    const bool hidden = state.archived || state.snoozed_until > 0;
    switch (request.show) {
      case Show::active: return !hidden;
      case Show::unread: return !hidden && !state.read;
      case Show::read: return !hidden && state.read;
      case Show::archived: return state.archived;
      case Show::snoozed: return !state.archived && state.snoozed_until > 0;
    }
    return false;
  }

  void compare_counts(const std::string& user) {
    model_.join(user);
    const auto counts = run(process().boxes.counts(box_of(user)));
    ASSERT_TRUE(counts) << counts.error().message;
    Tallies expected;
    for (const auto& [id, state] : model_.live(user, second())) {
      const auto& sent = model_.sent[id];
      const bool hidden = state.archived || state.snoozed_until > 0;
      const Tally one{.published = sent.everyone ? 0 : 1,
                      .total = hidden ? 0 : 1,
                      .unread = !hidden && !state.read,
                      .unseen = !hidden && !state.read && !state.seen,
                      .archived = state.archived,
                      .snoozed = !state.archived && state.snoozed_until > 0};
      expected[kAll] += one;
      if (!sent.category.empty()) expected[sent.category] += one;
    }
    for (const auto& category : {"*", "news", "orders", "team"}) {
      const auto found = counts->tallies.find(category);
      auto got = found == counts->tallies.end() ? Tally{} : found->second;
      got.read = 0;
      for (const auto& counter : kCounters)
        EXPECT_EQ(got.*counter.field, expected[category].*counter.field)
            << user << " " << category << " " << counter.name;
    }
  }

  void compare_feed(const std::string& user) {
    model_.join(user);
    // Pages of a few where there are few.
    const auto most = static_cast<int>(std::max<size_t>(7, model_.seen[user].size() / 10));
    FeedRequest request{.limit = static_cast<size_t>(1 + any(most)),
                        .show = any(2) == 0 ? Show::active : static_cast<Show>(any(5))};
    if (any(3) == 0) request.category = "news";
    std::vector<std::string> got;
    // The same page again, as somebody has it who has asked for it before: what is said to be still so, is.
    request.limit = any(2) == 0 ? 5 : request.limit;
    for (int pages = 0; pages < 10'000; ++pages) {
      const auto key = fmt::format("{}/{}/{}/{}/{}", user, request.before, request.limit,
                                   static_cast<int>(request.show), request.category.value_or(""));
      const auto before = known_.find(key);
      if (before != known_.end())
        request.known = KnownPage{.sequence = before->second.sequence, .until = before->second.until};
      auto page = run(process().boxes.feed(box_of(user), request));
      ASSERT_TRUE(page) << page.error().message;
      if (page->is_known) {
        page = before->second;
        ++still_known_;
      }
      for (const auto& entry : page->entries) {
        got.push_back(entry.message->id);
        const auto& state = model_.seen[user][entry.message->id];
        EXPECT_EQ(entry.unread, !state.read);
        EXPECT_EQ(entry.unseen, !state.read && !state.seen);
      }
      request.known.reset();
      request.before = page->next;
      if (known_.size() > 5'000) known_.clear();
      known_[key] = *page;
      if (page->next.empty()) break;
    }
    std::vector<std::string> expected;
    for (const auto& [id, state] : model_.live(user, second()))
      if (shows(state, model_.sent[id].category, request)) expected.push_back(id);
    std::ranges::reverse(expected);
    EXPECT_EQ(got, expected) << user;
  }

  // What an open page of the user shows: what it was sent at first, and all that it was told since.
  void compare_page(const std::string& user) {
    model_.join(user);
    auto& page = pages_[user];
    const bool is_new = page.since.own == 0;
    const auto changes = run(process().boxes.changes(box_of(user), page.since, is_new));
    ASSERT_TRUE(changes) << changes.error().message;
    if (is_new || changes->too_long_ago) {
      page.held.clear();
      for (const auto show : {Show::active, Show::archived, Show::snoozed}) {
        FeedRequest request{.limit = 100, .show = show};
        do {
          const auto read = run(process().boxes.feed(box_of(user), request)).value();
          for (const auto& entry : read.entries) page.take(entry);
          request.before = read.next;
        } while (!request.before.empty());
      }
    } else {
      page.take(changes->marks);
      for (const auto& entry : changes->entries) page.take(entry);
      for (const auto& id : changes->removed) page.held.erase(id);
    }
    page.since = changes->sequence;
    std::erase_if(page.held, [&](const auto& one) { return one.second.expires <= second(); });
    const auto live = model_.live(user, second());
    for (const auto& [id, held] : page.held) EXPECT_TRUE(live.contains(id)) << user << " still has " << id;
    for (const auto& [id, state] : live) {
      const auto held = page.held.find(id);
      if (held == page.held.end()) {
        ADD_FAILURE() << user << " has never heard of " << id;
        continue;
      }
      EXPECT_EQ(held->second.read, state.read) << user << " " << id;
      EXPECT_EQ(held->second.seen, state.read || state.seen) << user << " " << id;
      EXPECT_EQ(held->second.archived, state.archived) << user << " " << id;
      EXPECT_EQ(held->second.snoozed, state.snoozed_until > 0) << user << " " << id;
    }
  }

  // What is over for long is nothing that a step could be about.
  void prune() {
    std::set<std::string> gone;
    for (const auto& [id, sent] : model_.sent)
      if (sent.expires + 86400 * 20 < second()) gone.insert(id);
    for (const auto& id : gone) {
      model_.sent.erase(id);
      for (auto& [user, his] : model_.seen) his.erase(id);
      std::erase_if(snoozed_, [&](const Snoozed& one) { return one.id == id; });
    }
  }

  std::mt19937 random_;
  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path()}, clock_};
  std::unique_ptr<contract::Subject> subject_;  // instead of the engine
  std::vector<std::unique_ptr<Process>> processes_;
  Model model_;
  std::map<std::string, Page> pages_;
  std::map<std::string, FeedPage> known_;  // pages as they were answered last
  int still_known_ = 0;
  int keys_ = 0;
  struct Pending {
    TimePoint at;
    std::string id;
    Sent sent;
  };
  std::vector<Pending> pending_;
  struct Snoozed {
    int64_t at;
    std::string user;
    std::string id;
  };
  std::vector<Snoozed> snoozed_;
};

TEST_P(InboxModel, CountsAndFeedsAreThoseOfTheModel) {
  const auto steps = number_from_environment("TABELLA_MODEL_STEPS", 1500);
  for (int64_t i = 0; i < steps && !HasFailure(); ++i) {
    step();
    fire_timers();
    if (HasFailure()) break;
    if (killed()) end_faults();
    const auto& user = one_of(kUsers);
    compare_counts(user);
    if (any(4) == 0) compare_feed(user);
    if (any(2) == 0) compare_page(user);
    if (i % 500 == 499) prune();
    if (HasFailure()) ADD_FAILURE() << "at step " << i;
  }
  if (steps >= 1'000) EXPECT_GT(still_known_, 0) << "pages that were asked for again";
}

INSTANTIATE_TEST_SUITE_P(Random, InboxModel,
                         testing::Values(Mode{Luck::good, 1}, Mode{Luck::bad, 2}, Mode{Luck::bad, 3},
                                         Mode{Luck::killed, 4}, Mode{Luck::killed, 5}));

}  // namespace
}  // namespace tabella::inbox

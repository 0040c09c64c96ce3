#include "manhunt/bundles.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"
#include "manhunt/rates.h"
#include "manhunt/replies.h"
#include "manhunt/searches.h"
#include "manhunt/steps.h"
#include "manhunt/timeline.h"
#include "store/batches.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;
using store::Row;

namespace {

constexpr const char* kBundleTimer = "manhunt-bundle";
constexpr std::chrono::hours kBundleKept{24 * 7};
constexpr int64_t kMostInBundle = 500;
constexpr std::chrono::seconds kWhileOthersWork{5};

// What is limited: a method at its destination. What goes to another one is another bundle.
std::string limited(const Method& method) {
  constexpr size_t kDigits = 16;
  return fmt::format("{}.{}", method.id, to_hex(sha256(method.destination)).substr(0, kDigits));
}

RateWindow window_of(const Method& method, TimePoint time) {
  return RateWindow::at(limited(method), method.limit.per, time);
}

// Says as which an attempt was counted.
store::Item counted_key(const Method& method, const Attempt& attempt) {
  return Row()
      .set(kPartition, rate_partition(limited(method)))
      .set(kSort, fmt::format("{}|{}", attempt.search, attempt.id.text()));
}

}  // namespace

// The attempts of a bundle that go on, each with its search, in the same order.
struct Bundles::Gathered {
  std::vector<Attempt> attempts;
  std::vector<Search> searches;

  const Search& search_of(const Attempt& attempt) const {
    return *std::ranges::find(searches, attempt.search, &Search::id);
  }
  // Nothing of it is under way, and nobody is in a hurry.
  bool may_wait() const {
    return std::ranges::all_of(searches, &Search::low_urgency) &&
           std::ranges::all_of(attempts, [](const Attempt& attempt) {
             return attempt.state == AttemptState::bundled || attempt.waits_for_next_try();
           });
  }
};

struct Bundles::Both {
  Gathered begun;    // and not finished
  Gathered waiting;  // not begun
};

Bundles::Bundles(Parts parts, std::string table) : parts_(parts), table_(std::move(table)) {
  parts_.schedule.on(kBundleTimer, [this](const schedule::Firing& firing) { return fire(firing); });
}

Async<std::optional<Bundles::Place>> Bundles::count(const Method& method, const Attempt& attempt,
                                                    bool again) {
  if (method.limit.count == 0) co_return std::nullopt;
  std::optional<Counted> counted;
  if (again) {
    TABELLA_CO_ASSIGN(counted, co_await counted_before(method, attempt));
  }
  if (!counted) {
    TABELLA_CO_ASSIGN(counted, co_await count_now(method, attempt));
  }
  const auto beyond = counted->number - method.limit.count;
  if (beyond <= 0) co_return std::nullopt;
  co_return Place{
      .bundle = fmt::format("{}.{}.{}", limited(method), counted->window, (beyond - 1) / kMostInBundle),
      .due = counted->due};
}

Async<std::optional<Bundles::Counted>> Bundles::counted_before(const Method& method, const Attempt& attempt) {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await parts_.store.get_item(
                        {.table = table_, .key = counted_key(method, attempt), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return Counted{.window = store::number_of(*found.item, "window"),
                    .number = store::number_of(*found.item, "number"),
                    .due = time_at(store::number_of(*found.item, "due"))};
}

Async<Bundles::Counted> Bundles::count_now(const Method& method, const Attempt& attempt) {
  const auto window = window_of(method, parts_.clock.now());
  TABELLA_CO_ASSIGN(const auto number, co_await count_once(parts_.store, table_, window));
  const Counted counted{
      .window = window.number, .number = *number, .due = method.limit.bundle_due(window.number)};
  store::Update note(table_, counted_key(method, attempt));
  note.set("entityType", "counted").set("window", counted.window).set("number", counted.number);
  note.set("due", epoch_milliseconds(counted.due)).set(kExpires, rate_expires(window));
  TABELLA_CO_TRY(co_await parts_.store.update_item(std::move(note)));
  co_return counted;
}

Async<std::map<std::string, int64_t>> Bundles::used(std::span<const Method> methods) {
  std::vector<store::Item> keys;
  std::map<std::string, std::string> ids;  // of methods, by what is counted
  for (const auto& method : methods) {
    if (method.limit.count == 0) continue;
    const auto window = window_of(method, parts_.clock.now());
    keys.push_back(rate_key(window));
    ids.emplace(window.name, method.id);
  }
  std::map<std::string, int64_t> used;
  if (keys.empty()) co_return used;
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(parts_.store, table_, std::move(keys)));
  for (const auto& row : rows) used[ids[store::text_of(row, "name")]] = store::number_of(row, "count");
  co_return used;
}

store::TransactWrite Bundles::join_write(const Attempt& attempt) const {
  store::Item row = Row()
                        .set(kPartition, bundle_partition(attempt.bundle))
                        .set(kSort, fmt::format("{}|{}", attempt.search, attempt.id.text()))
                        .set("entityType", "bundled")
                        .set("search", attempt.search)
                        .set("attempt", attempt.id.text())
                        .set(kExpires, (attempt.bundle_due + milliseconds(kBundleKept).count()) / 1000);
  return store::Put(table_, std::move(row));
}

// A timer that is there already is left alone. Where it may be under way, and has not seen this one, another
// sets it anew once it is done.
Async<void> Bundles::expect(const Attempt& attempt) {
  const auto now = parts_.clock.now();
  const auto due = time_at(attempt.bundle_due);
  schedule::Timer timer{.id = bundle_timer(attempt.bundle),
                        .kind = kBundleTimer,
                        .at = std::max(due, now),
                        .payload = fmt::format("{}|{}|{}", attempt.domain, attempt.contact, attempt.bundle)};
  TABELLA_CO_ASSIGN(const bool put, co_await parts_.schedule.put_if_absent(timer));
  if (put || now < due - kBundleGrace) co_return store::Result<void>();
  timer.id += fmt::format("|{}|{}", attempt.search, attempt.id.text());
  timer.at = now + kWhileOthersWork;
  co_return co_await parts_.schedule.put(std::move(timer));
}

awaitable<void> Bundles::fire(const schedule::Firing& firing) {
  const auto fired = co_await handle(firing);
  if (!fired) throw std::runtime_error(fired.error().message);
}

Async<void> Bundles::handle(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  if (parts.size() != 3) {
    log::error("a timer of manhunt names no bundle: {}", firing.timer.payload);
    co_return store::Result<void>();
  }
  const auto now = parts_.clock.now();
  if (auto timer = firing.timer; timer.id != bundle_timer(parts[2])) {
    timer.id = bundle_timer(parts[2]);
    timer.at = now;
    const auto id = timer.id;
    TABELLA_CO_ASSIGN(bool set, co_await parts_.schedule.put_if_absent(std::move(timer)));
    // Where that waits for something, what has come may be urgent.
    if (!set) {
      TABELLA_CO_ASSIGN(set, co_await parts_.schedule.reschedule_waiting(id, now));
    }
    if (!set) TABELLA_CO_TRY(co_await parts_.schedule.put_off(firing, now + kWhileOthersWork));
    co_return store::Result<void>();
  }
  TABELLA_CO_ASSIGN(const auto later,
                    co_await send(std::string(parts[0]), std::string(parts[1]), std::string(parts[2])));
  if (!later) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, parts_.clock.now() + later->wait));
  TABELLA_CO_ASSIGN(const bool urgent, co_await has_urgent(later->quiet));
  if (urgent) TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, parts_.clock.now()));
  co_return store::Result<void>();
}

Async<bool> Bundles::has_urgent(const std::vector<std::string>& searches) {
  std::vector<store::Item> keys;
  for (const auto& id : searches) keys.push_back(search_key(id));
  if (keys.empty()) co_return false;
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(parts_.store, table_, std::move(keys)));
  co_return std::ranges::any_of(rows, [](const store::Item& row) {
    const auto search = to_search(row);
    return search && !search->low_urgency;
  });
}

Async<Bundles::Both> Bundles::gather(const std::string& bundle) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          parts_.store, store::Query(table_).partition(kPartition, bundle_partition(bundle)).consistent()));
  Both both;
  for (const auto& row : rows) {
    const auto id = AttemptId::parse(store::text_of(row, "attempt"));
    const auto search_id = store::text_of(row, "search");
    if (!id) continue;
    std::vector<store::Item> keys{search_key(search_id), attempt_key(search_id, *id)};
    TABELLA_CO_ASSIGN(const auto found, co_await store::get_all(parts_.store, table_, std::move(keys)));
    std::optional<Search> search;
    std::optional<Attempt> attempt;
    for (const auto& each : found) {
      if (auto one = to_search(each)) search = std::move(one);
      if (auto one = to_attempt(each)) attempt = std::move(one);
    }
    if (!search || !attempt || attempt->is_over()) continue;
    if (search->status != Status::active || search->has_declined(attempt->contact)) {
      TABELLA_CO_TRY(co_await parts_.sender.give_up(std::move(*attempt)));
      continue;
    }
    auto& gathered = attempt->state == AttemptState::bundled ? both.waiting : both.begun;
    gathered.searches.push_back(std::move(*search));
    gathered.attempts.push_back(std::move(*attempt));
  }
  co_return both;
}

// How many go on: the first of them.
Async<size_t> Bundles::begin(std::span<Attempt> attempts) {
  if (attempts.front().state == AttemptState::bundled) co_return co_await parts_.sender.begin(attempts);
  // What reached nobody is said anew, with a link that is good from now on.
  if (attempts.front().waits_for_next_try())
    for (auto& attempt : attempts) attempt.said = epoch_milliseconds(parts_.clock.now());
  co_return co_await parts_.sender.begin_again(attempts);
}

// Those that were begun are finished before others are, unless they wait for the morning.
Async<std::optional<Bundles::Later>> Bundles::send(const std::string& domain, const std::string& contact_id,
                                                   const std::string& bundle) {
  TABELLA_CO_ASSIGN(auto both, co_await gather(bundle));
  TABELLA_CO_ASSIGN(const auto contact, co_await parts_.contacts.find(domain, contact_id));
  const auto now = parts_.clock.now();
  const auto morning = contact ? after_quiet_hours(*contact, now) : now;
  Later later{.wait = std::chrono::ceil<milliseconds>(morning - now)};
  for (auto* gathered : {&both.begun, &both.waiting}) {
    if (gathered->attempts.empty()) continue;
    if (morning == now || !gathered->may_wait()) {
      TABELLA_CO_ASSIGN(const auto again,
                        co_await send_together(*gathered, contact.value_or(Contact{}), domain, bundle));
      if (morning > now) TABELLA_CO_TRY(co_await reckon_anew(*gathered));
      co_return again;
    }
    for (const auto& search : gathered->searches) later.quiet.push_back(search.id);
  }
  if (later.quiet.empty()) co_return std::nullopt;
  co_return later;
}

// What went along with something urgent was to wait for the morning, and its search with it.
Async<void> Bundles::reckon_anew(const Gathered& gathered) {
  for (const auto& attempt : gathered.attempts)
    if (gathered.search_of(attempt).low_urgency)
      TABELLA_CO_TRY(co_await bring_forward(parts_.schedule, attempt.search,
                                            {.round = attempt.id.round + 1, .step = 1}, parts_.clock.now()));
  co_return store::Result<void>();
}

Async<std::optional<Bundles::Later>> Bundles::send_together(Gathered& gathered, const Contact& person,
                                                            const std::string& domain,
                                                            const std::string& bundle) {
  TABELLA_CO_ASSIGN(const auto view, co_await parts_.domains.find(domain));
  const auto& any = gathered.attempts.front();
  TABELLA_CO_ASSIGN(const auto method, co_await parts_.contacts.find_method(any.contact, any.method));
  if (!is_still_used(method, any, *view)) {
    for (auto& attempt : gathered.attempts)
      TABELLA_CO_TRY(co_await parts_.sender.give_up(attempt, kNotUsedAnyMore));
    co_return Later{};
  }
  TABELLA_CO_ASSIGN(const auto active, co_await begin(gathered.attempts));
  if (active == 0) co_return Later{};
  const auto attempts = std::span(gathered.attempts).first(active);
  const auto& front = attempts.front();
  const auto occasion = parts_.sender.occasion_of(gathered.search_of(front), person, *view, front);
  std::vector<std::string> summaries;
  for (const auto& attempt : attempts) summaries.push_back(summary_of(gathered.search_of(attempt)));
  const auto said = summaries.size() == 1 ? say(occasion) : say_bundle(occasion, summaries);
  for (auto& attempt : attempts) {
    attempt.text = said.text;
    attempt.language = said.language;
    attempt.subject = said.subject;
  }
  if (front.kind == ChannelKind::text)
    TABELLA_CO_TRY(co_await parts_.store.put_item(reply_row_put(table_, front, parts_.clock.now())));
  auto message = parts_.sender.message_of(occasion, front);
  // The same whenever these are sent again, and another for those that come to it late.
  message.id = fmt::format("bundle/{}/{}", bundle, front.tries.front().at);
  TABELLA_CO_ASSIGN(const auto later, co_await parts_.sender.send(attempts, message));
  // Others may wait.
  co_return Later{.wait = later.value_or(milliseconds{0})};
}

}  // namespace tabella::manhunt

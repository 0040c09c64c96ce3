#include "manhunt/runner.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "manhunt/links.h"
#include "manhunt/replies.h"
#include "manhunt/timeline.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/together.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using schedule::Firing;
using store::Async;

namespace {

template <class T>
T value_or_throw(store::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

constexpr std::chrono::seconds kLooksAgain{1};
constexpr int kWaitForAnswer = 9;  // with twice the pause each time: four minutes
constexpr int kMostWebhooks = 16;  // under way, of a domain

// Names by which it can be found. A row without them is another program's mistake, and nobody is asked for
// it.
bool has_names(const Search& search) {
  const auto is_name = [](std::string_view name) { return problem_with_name("", name).empty(); };
  const bool has_target = search.contact.empty() || is_name(search.contact);
  const bool has_policy = search.policy.empty() || is_name(search.policy);
  if (is_search_id(search.id) && is_name(search.domain) && has_target && has_policy) return true;
  log::warning(
      "manhunt: the row {} of a search has an id, domain, contact or policy that is none; it is left alone",
      printable(std::string_view(search.id).substr(0, 100)));
  return false;
}

}  // namespace

struct Runner::Due {
  std::string search;
  AttemptId id;
  std::string contact;
  std::string method;
};

// The rows that decide an attempt, as they are now.
struct Runner::Loaded {
  std::optional<Search> search;
  std::optional<Step> step;
  std::optional<Attempt> attempt;
  std::optional<Contact> contact;
  std::optional<Method> method;
};

Runner::Runner(Parts parts, std::string table)
    : parts_(parts), table_(std::move(table)), webhooks_(parts_.schedule, parts_.clock, kMostWebhooks) {
  auto& timers = parts_.schedule;
  timers.on(kStepTimer, [this](const Firing& firing) { return fire_step(firing); });
  timers.on(kEndTimer, [this](const Firing& firing) { return fire_end(firing); });
  timers.on(kUndeliveredTimer, [this](const Firing& firing) { return fire_undelivered(firing); });
  for (const auto kind : kChannelKinds)
    timers.on(attempt_timer_kind(kind), [this](const Firing& firing) { return fire_attempt(firing); });
}

// Many at once: what they write is then committed together.
awaitable<void> Runner::handle(std::span<const store::StreamRecord> records) {
  std::vector<awaitable<void>> works;
  for (const auto& record : records) {
    if (!record.new_image) continue;
    auto search = to_search(*record.new_image);
    if (!search || !has_names(*search)) continue;
    const auto before = record.old_image ? to_search(*record.old_image) : std::nullopt;
    if (record.event == store::StreamEvent::insert)
      works.push_back(opened(std::move(*search)));
    else if (before && before->status == Status::active && search->status != Status::active)
      works.push_back(settle(search->id));
    else if (before && search->status == Status::active && search->declined.size() > before->declined.size())
      works.push_back(hurry(search->id));
    else if (before && search->raising && !before->raising)
      works.push_back(finish_raising(search->id));
  }
  co_await store::do_together(std::move(works));
}

awaitable<void> Runner::opened(Search search) {
  ++started_;
  const bool active = search.status == Status::active;
  if (active && !search.begun) {
    auto begun = co_await begin_of_others(search);
    // That must not stop the stream.
    if (!begun && store::is_invalid(begun.error())) begun = co_await fail(search, begun.error().message);
    value_or_throw(std::move(begun));
  }
  value_or_throw(co_await parts_.events.announce(search, active ? "opened" : name_of(search.status)));
}

// One that another program has written into the table. It counts from when it was opened, however long its
// stream took.
Async<void> Runner::begin_of_others(const Search& search) {
  if (search.steps.empty()) co_return store::refuse("its row says neither whom to ask nor by which steps");
  TABELLA_CO_TRY(co_await parts_.searches.adopt(search));
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search.domain));
  if (const auto window = domain->under_maintenance(search.policy, time_at(search.created));
      !window.empty()) {
    TABELLA_CO_TRY(
        co_await parts_.searches.end(search.id, Status::canceled, {.how = "maintenance", .detail = window}));
    co_return store::Result<void>();
  }
  TABELLA_CO_TRY(co_await begin_step(search, {}, time_at(search.created)));
  // Where it has ended meanwhile its list may have come too late for that.
  TABELLA_CO_ASSIGN(const auto full, co_await parts_.searches.find_full(search.id));
  if (full && full->search.status != Status::active) TABELLA_CO_TRY(co_await unlist(*full));
  co_return store::Result<void>();
}

Async<void> Runner::fail(const Search& search, const std::string& why) {
  const auto ended =
      co_await parts_.searches.end(search.id, Status::failed, {.how = "nobody", .detail = why});
  if (ended) co_return store::Result<void>();
  if (!store::is_invalid(ended.error())) co_return store::error_of(ended);
  log::warning("manhunt: search {} can neither be begun nor ended: {}", printable(search.id), why);
  co_return store::Result<void>();
}

// The lists in which a search stands follow its row.
awaitable<void> Runner::settle(std::string search) {
  const auto full = value_or_throw(co_await parts_.searches.find_full(search));
  if (!full || full->search.status == Status::active) co_return;
  ++ended_[static_cast<size_t>(full->search.status)];
  value_or_throw(co_await unlist(*full));
  value_or_throw(co_await parts_.events.announce(full->search, name_of(full->search.status)));
}

Async<void> Runner::unlist(const FullSearch& full) {
  for (const auto& listing : full.listings)
    if (listing.status != full.search.status)
      TABELLA_CO_TRY(store::was_made(
          co_await parts_.store.update_item(listing_update(table_, listing, full.search.status))));
  for (const auto& attempt : full.attempts)
    if (attempt.simulated)
      TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(unlist_update(table_, attempt))));
  co_return store::Result<void>();
}

awaitable<void> Runner::hurry(std::string search) {
  const auto full = value_or_throw(co_await parts_.searches.find_full(search));
  if (!full || full->steps.empty() || !all_declined(*full)) co_return;
  const auto now = parts_.clock.now();
  const bool stepped =
      value_or_throw(co_await parts_.schedule.reschedule(step_timer(search, next_of(*full)), now));
  if (!stepped) value_or_throw(co_await parts_.schedule.reschedule(end_timer(search), now));
}

// Whoever has begun it may have been killed.
awaitable<void> Runner::finish_raising(std::string search) {
  value_or_throw(co_await parts_.searches.finish_raising(std::move(search)));
}

Async<void> Runner::wait(const Firing& firing, const Search& search, TimePoint until) {
  TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, until));
  if (!search.low_urgency) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(const auto now_is, co_await parts_.searches.find(search.id));
  if (now_is && !now_is->low_urgency)
    TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, parts_.clock.now()));
  co_return store::Result<void>();
}

awaitable<void> Runner::fire_step(const Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  const auto id = parts.size() == 2 ? AttemptId::parse(parts[1]) : std::nullopt;
  if (!id) co_return log::error("a timer of manhunt names no step: {}", firing.timer.payload);
  const auto full = value_or_throw(co_await parts_.searches.find_full(std::string(parts[0])));
  if (!full || full->search.status != Status::active) co_return;
  if (id->step == 1 && id->round > 1) {
    const auto later = value_or_throw(co_await end_of_round(*full, id->round - 1));
    if (later) {
      value_or_throw(co_await wait(firing, full->search, *later));
      co_return;
    }
  }
  value_or_throw(co_await begin_step(full->search, *id, parts_.clock.now()));
}

Async<void> Runner::begin_step(const Search& search, AttemptId id, TimePoint started) {
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search.domain));
  TABELLA_CO_ASSIGN(const auto step,
                    co_await make_step(parts_.contacts, search, id, *domain, parts_.clock.now(), started));
  Plan plan;
  plan.writes.push_back(store::Check(table_, search_key(search.id)).when(is_active()));
  plan_step(plan, parts_.schedule, table_, search, step);
  const auto made =
      co_await parts_.store.transact_write_items({.writes = std::move(plan.writes), .token = make_uuid()});
  if (made) plan.were_made(parts_.schedule);
  // It was begun before, with its timers, or the search has ended.
  if (!made && !store::failed_its_conditions(made.error())) co_return store::error_of(made);
  // Who declined while it was begun is not waited for.
  TABELLA_CO_ASSIGN(const auto now, co_await parts_.searches.find(search.id));
  if (now && !now->declined.empty()) co_await hurry(search.id);
  co_return store::Result<void>();
}

Async<std::optional<TimePoint>> Runner::end_of_round(const FullSearch& full, int round) {
  if (all_declined(full)) co_return std::nullopt;
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(full.search.domain));
  std::vector<std::string> ids;
  for (const auto& step : full.steps)
    for (const auto& track : step.tracks) ids.push_back(track.contact);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  TABELLA_CO_ASSIGN(const auto directory,
                    co_await load_contacts(parts_.contacts, full.search.domain, std::move(ids)));
  const auto now = parts_.clock.now();
  const auto ends = timeline_of(full, *domain, directory, now).rounds.at(static_cast<size_t>(round) - 1);
  if (ends <= now) co_return std::nullopt;
  // What is under way counts as asked now: it is waited for, and not looked at all the time.
  const bool is_under_way = ends == now + full.search.steps.back().wait;
  co_return is_under_way ? std::max(ends, now + kLooksAgain) : ends;
}

awaitable<void> Runner::fire_attempt(const Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  const auto id = parts.size() == 4 ? AttemptId::parse(parts[1]) : std::nullopt;
  if (!id) co_return log::error("a timer of manhunt names no attempt: {}", firing.timer.payload);
  const Due due{.search = std::string(parts[0]),
                .id = *id,
                .contact = std::string(parts[2]),
                .method = std::string(parts[3])};
  value_or_throw(co_await make_attempt(firing, due));
}

Async<Runner::Loaded> Runner::load(const Due& due) {
  std::vector<store::Item> keys{search_key(due.search), step_key(due.search, due.id),
                                attempt_key(due.search, due.id), contact_key(due.contact),
                                method_key(due.contact, due.method)};
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(parts_.store, table_, std::move(keys)));
  Loaded loaded;
  for (const auto& row : rows) {
    const auto type = entity_type(row);
    if (type == "search") loaded.search = to_search(row);
    if (type == "searchStep") loaded.step = to_step(row);
    if (type == "searchAttempt") loaded.attempt = to_attempt(row);
    if (type == "contact") loaded.contact = to_contact(row);
    if (type == "contactMethod") loaded.method = to_method(row);
  }
  co_return loaded;
}

Async<void> Runner::make_attempt(const Firing& firing, const Due& due) {
  TABELLA_CO_ASSIGN(auto loaded, co_await load(due));
  if (!loaded.search || !loaded.step || (loaded.attempt && loaded.attempt->is_over()))
    co_return store::Result<void>();
  const auto& search = *loaded.search;
  if (search.status != Status::active || search.has_declined(due.contact)) {
    if (loaded.attempt) TABELLA_CO_TRY(co_await parts_.sender.give_up(std::move(*loaded.attempt)));
    co_return store::Result<void>();
  }
  if (loaded.attempt && !loaded.attempt->bundle.empty())
    co_return co_await parts_.bundles.expect(*loaded.attempt);
  std::shared_ptr<void> place;
  if (loaded.method && loaded.method->kind == ChannelKind::webhook) {
    TABELLA_CO_ASSIGN(place, co_await webhooks_.take(firing, search.domain));
    if (!place) co_return store::Result<void>();
  }
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search.domain));
  const bool may_wait = !loaded.attempt || loaded.attempt->waits_for_next_try();
  if (may_wait && search.low_urgency && loaded.contact) {
    const auto now = parts_.clock.now();
    const auto later = after_quiet_hours(*loaded.contact, now);
    if (later > now) co_return co_await wait(firing, search, later);
  }
  if (loaded.attempt) co_return co_await make_again(firing, loaded, *domain, std::move(*loaded.attempt));
  TABELLA_CO_ASSIGN(auto attempt, co_await begin_attempt(firing, due, loaded, *domain));
  if (!attempt) co_return store::Result<void>();
  if (attempt->state == AttemptState::bundled) co_return co_await parts_.bundles.expect(*attempt);
  if (attempt->state != AttemptState::sending) co_return store::Result<void>();
  co_return co_await send(firing, loaded, *domain, std::move(*attempt));
}

Async<void> Runner::make_again(const Firing& firing, const Loaded& loaded, const Domain& domain,
                               Attempt attempt) {
  if (!is_still_used(loaded.method, attempt, domain))
    co_return co_await parts_.sender.give_up(std::move(attempt), kNotUsedAnyMore);
  // A link that was made for the try before may be good no longer.
  if (attempt.waits_for_next_try()) {
    attempt.said = epoch_milliseconds(parts_.clock.now());
    put_into_words(loaded, domain, attempt);
  }
  TABELLA_CO_ASSIGN(const auto again, co_await parts_.sender.begin_again({&attempt, 1}));
  if (again == 0) co_return store::Result<void>();
  if (attempt.kind == ChannelKind::text)
    TABELLA_CO_TRY(co_await parts_.store.put_item(reply_row_put(table_, attempt, parts_.clock.now())));
  co_return co_await send(firing, loaded, domain, std::move(attempt));
}

Async<std::optional<Attempt>> Runner::begin_attempt(const Firing& firing, const Due& due,
                                                    const Loaded& loaded, const Domain& domain) {
  TABELLA_CO_ASSIGN(auto attempt, co_await draft_attempt(firing, due, loaded, domain));
  Plan plan;
  plan.writes.push_back(store::Check(table_, search_key(due.search)).when(is_asked(due.contact)));
  plan.writes.push_back(store::Put(table_, to_item(attempt)).when(store::absent(kPartition)));
  plan_next(plan, due, loaded, attempt);
  if (attempt.state == AttemptState::bundled) plan.writes.push_back(parts_.bundles.join_write(attempt));
  if (attempt.state == AttemptState::sending && attempt.kind == ChannelKind::text)
    plan.writes.push_back(reply_row_put(table_, attempt, parts_.clock.now()));
  const auto begun =
      co_await parts_.store.transact_write_items({.writes = std::move(plan.writes), .token = make_uuid()});
  if (!begun && !store::failed_its_conditions(begun.error())) co_return store::error_of(begun);
  if (!begun) {
    // Somebody else is at it, or nobody is to be asked any more: the timer comes again where that is not so.
    TABELLA_CO_ASSIGN(const auto now, co_await parts_.searches.find(due.search));
    if (!now || now->status != Status::active || now->has_declined(due.contact)) co_return std::nullopt;
    co_return store::fail(store::ErrorCode::unavailable, "the attempt was begun by somebody else");
  }
  plan.were_made(parts_.schedule);
  lateness_.observe(std::max(time_at(attempt.started) - firing.timer.at, Elapsed{0}));
  co_return attempt;
}

Async<Attempt> Runner::draft_attempt(const Firing& firing, const Due& due, const Loaded& loaded,
                                     const Domain& domain) {
  const auto& search = *loaded.search;
  const auto& tracks = loaded.step->tracks;
  const bool has_track = static_cast<size_t>(due.id.track) <= tracks.size();
  Attempt attempt{.search = due.search,
                  .id = due.id,
                  .domain = search.domain,
                  .contact = due.contact,
                  .contact_name = has_track ? tracks[static_cast<size_t>(due.id.track) - 1].name : "",
                  .method = due.method,
                  .due = epoch_milliseconds(firing.timer.at),
                  .started = epoch_milliseconds(parts_.clock.now()),
                  .code = reply_code(search, due.id)};
  if (!loaded.method || !is_used(*loaded.method, domain)) {
    attempt.state = AttemptState::skipped;
    attempt.finished = attempt.started;
    attempt.detail = !loaded.method           ? "the method was removed"
                     : loaded.method->enabled ? "the method is not verified"
                                              : "the method is disabled";
    co_return attempt;
  }
  attempt.kind = loaded.method->kind;
  attempt.destination = loaded.method->destination;
  attempt.detail = put_into_words(loaded, domain, attempt);
  const auto first = parts_.sender.first_try(attempt.kind);
  if (!first) {
    attempt.state = AttemptState::failed;
    attempt.finished = attempt.started;
    attempt.detail = "there is no provider for this channel";
    co_return attempt;
  }
  TABELLA_CO_ASSIGN(const auto place,
                    co_await parts_.bundles.count(*loaded.method, attempt, firing.attempt > 1));
  if (place) {
    attempt.state = AttemptState::bundled;
    attempt.bundle = place->bundle;
    attempt.bundle_due = epoch_milliseconds(place->due);
  } else {
    attempt.tries.push_back(*first);
  }
  co_return attempt;
}

// Gives what is wrong with them.
std::string Runner::put_into_words(const Loaded& loaded, const Domain& domain, Attempt& attempt) const {
  const auto contact = loaded.contact.value_or(Contact{});
  auto said = say(parts_.sender.occasion_of(*loaded.search, contact, domain, attempt));
  if (attempt.kind == ChannelKind::email) attempt.subject = std::move(said.subject);
  attempt.text = std::move(said.text);
  attempt.language = std::move(said.language);
  return std::move(said.problem);
}

void Runner::plan_next(Plan& plan, const Due& due, const Loaded& loaded, const Attempt& attempt) const {
  const auto& tracks = loaded.step->tracks;
  if (static_cast<size_t>(due.id.track) > tracks.size()) return;
  const auto& track = tracks[static_cast<size_t>(due.id.track) - 1];
  if (static_cast<size_t>(due.id.number) >= track.methods.size()) return;
  auto next = due.id;
  ++next.number;
  const auto delay = track.methods[static_cast<size_t>(next.number) - 1].delay;
  plan.set(parts_.schedule, attempt_timer(due.search, next, track, time_at(attempt.started) + delay));
}

Async<void> Runner::send(const Firing& firing, const Loaded& loaded, const Domain& domain, Attempt attempt) {
  const auto contact = loaded.contact.value_or(Contact{});
  const auto message =
      parts_.sender.message_of(parts_.sender.occasion_of(*loaded.search, contact, domain, attempt), attempt);
  TABELLA_CO_ASSIGN(const auto later, co_await parts_.sender.send({&attempt, 1}, message));
  if (later)
    TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, parts_.clock.now() + *later));
  co_return store::Result<void>();
}

awaitable<void> Runner::fire_end(const Firing& firing) {
  value_or_throw(co_await check_end(firing, firing.timer.payload));
}

awaitable<void> Runner::fire_undelivered(const Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  const auto id = parts.size() == 4 ? AttemptId::parse(parts[1]) : std::nullopt;
  if (!id) co_return log::error("a timer of manhunt names no attempt: {}", firing.timer.payload);
  const auto attempt = value_or_throw(co_await parts_.searches.find_attempt(std::string(parts[0]), *id));
  if (!attempt) co_return;
  std::vector<Attempt> all{*attempt};
  if (!attempt->bundle.empty()) all = value_or_throw(co_await parts_.searches.sent_in(attempt->bundle));
  // Its provider may have been faster than we were with writing down what it took.
  const bool is_under_way = std::ranges::any_of(all, [&](const Attempt& one) {
    return one.came_with(*attempt) && !one.is_over() && !one.waits_for_next_try();
  });
  if (is_under_way && firing.attempt < kWaitForAnswer)
    throw std::runtime_error("the attempt is still under way");
  for (auto& one : all) {
    const bool is_lost = one.state == AttemptState::sent && one.tries.back().reference == parts[3];
    if (is_lost) value_or_throw(co_await try_next(firing, std::move(one), std::string(parts[2])));
  }
  if (!attempt->bundle.empty()) value_or_throw(co_await parts_.bundles.expect(*attempt));
}

Async<void> Runner::try_next(const Firing& firing, Attempt attempt, const std::string& why) {
  attempt.tries.back().outcome = Outcome::failed;
  attempt.tries.back().detail = why;
  if (!parts_.sender.has_next(attempt)) co_return co_await parts_.sender.give_up(std::move(attempt));
  attempt.state = AttemptState::sending;
  Plan plan;
  plan.writes.push_back(undelivered_update(table_, attempt));
  if (attempt.bundle.empty()) plan.set(parts_.schedule, attempt_timer(attempt, firing.timer.at));
  const auto made =
      co_await parts_.store.transact_write_items({.writes = std::move(plan.writes), .token = make_uuid()});
  if (made) plan.were_made(parts_.schedule);
  if (!made && !store::failed_its_conditions(made.error())) co_return store::error_of(made);
  co_return store::Result<void>();
}

// Whoever is still to be asked is asked first.
Async<void> Runner::check_end(const Firing& firing, const std::string& id) {
  TABELLA_CO_ASSIGN(const auto full, co_await parts_.searches.find_full(id));
  if (!full || full->search.status != Status::active) co_return store::Result<void>();
  const bool declined = all_declined(*full);
  TABELLA_CO_ASSIGN(const auto later,
                    co_await end_of_round(*full, static_cast<int>(full->search.repeat) + 1));
  if (later) co_return co_await wait(firing, full->search, *later);
  const bool nobody = std::ranges::all_of(full->steps, [](const Step& step) {
    return std::ranges::all_of(step.tracks, [](const Track& track) { return track.methods.empty(); });
  });
  const auto* how = nobody ? "nobody" : declined ? "declined" : "exhausted";
  const auto* detail = nobody ? "nobody was on call, or they have no method that can be used" : "";
  TABELLA_CO_TRY(co_await parts_.searches.end(id, Status::failed, {.how = how, .detail = detail}));
  co_return store::Result<void>();
}

void Runner::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_manhunt_searches_started_total", "Searches whose opening this process has seen",
              static_cast<double>(started_));
  for (const auto status : {Status::canceled, Status::successful, Status::failed})
    out.counter("tabella_manhunt_searches_ended_total", "Searches whose end this process has seen",
                static_cast<double>(ended_[static_cast<size_t>(status)]), {{"status", name_of(status)}});
  out.histogram("tabella_manhunt_attempt_lateness_seconds", "How long after their time attempts were begun",
                lateness_);
}

}  // namespace tabella::manhunt

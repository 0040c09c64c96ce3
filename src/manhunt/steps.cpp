#include "manhunt/steps.h"

#include <algorithm>

#include <fmt/format.h>

#include "manhunt/timeline.h"
#include "store/rows.h"

namespace tabella::manhunt {

using schedule::Timer;
using std::chrono::milliseconds;
using store::Async;

namespace {

Timer make_step_timer(const Search& search, const AttemptId& id, TimePoint at) {
  return {.id = step_timer(search.id, id),
          .kind = kStepTimer,
          .at = at,
          .payload = fmt::format("{}|{}", search.id, id.text())};
}

// The next step, the next round, or the end. Where others of the round take longer, it finds out when it
// fires.
Timer next_timer(const Search& search, const Step& step) {
  const auto wait = search.steps[static_cast<size_t>(step.number) - 1].wait;
  const auto begun = time_at(step.started);
  if (static_cast<size_t>(step.number) < search.steps.size())
    return make_step_timer(search, {.round = step.round, .step = step.number + 1}, begun + wait);
  milliseconds longest{0};
  for (const auto& track : step.tracks) {
    milliseconds length{0};
    for (const auto& method : track.methods) length += method.delay;
    longest = std::max(longest, length);
  }
  const auto at = begun + longest + wait;
  if (step.round <= search.repeat) return make_step_timer(search, {.round = step.round + 1, .step = 1}, at);
  return {.id = end_timer(search.id), .kind = kEndTimer, .at = at, .payload = search.id};
}

}  // namespace

std::string attempt_timer_kind(ChannelKind kind) { return fmt::format("manhunt-{}", name_of(kind)); }

std::string step_timer(const std::string& search, const AttemptId& id) {
  return fmt::format("manhunt|{}|{}", search, id.step_text());
}
std::string end_timer(const std::string& search) { return fmt::format("manhunt|{}|end", search); }

Async<void> bring_forward(schedule::Schedule& schedule, std::string search, AttemptId next, TimePoint at) {
  TABELLA_CO_ASSIGN(const bool is_step, co_await schedule.reschedule_waiting(step_timer(search, next), at));
  if (!is_step) TABELLA_CO_TRY(co_await schedule.reschedule_waiting(end_timer(search), at));
  co_return store::Result<void>();
}

Timer attempt_timer(const Attempt& attempt, TimePoint at) {
  const auto id = attempt.id.text();
  return {.id = fmt::format("manhunt|{}|{}", attempt.search, id),
          .kind = attempt_timer_kind(attempt.kind),
          .at = at,
          .payload = fmt::format("{}|{}|{}|{}", attempt.search, id, attempt.contact, attempt.method)};
}

Timer attempt_timer(const std::string& search, const AttemptId& id, const Track& track, TimePoint at) {
  const auto& method = track.methods[static_cast<size_t>(id.number) - 1];
  return attempt_timer(
      Attempt{.search = search, .id = id, .contact = track.contact, .method = method.id, .kind = method.kind},
      at);
}

void Plan::set(const schedule::Schedule& schedule, Timer timer) {
  writes.push_back(schedule.put_write(timer));
  timers.push_back(std::move(timer));
}

void Plan::were_made(schedule::Schedule& schedule) const {
  for (const auto& timer : timers) schedule.was_set(timer);
}

Async<Step> make_step(Contacts& contacts, const Search& search, const AttemptId& id, const Domain& domain,
                      TimePoint now, TimePoint started) {
  Step step{
      .search = search.id, .round = id.round, .number = id.step, .started = epoch_milliseconds(started)};
  const auto called = called_at(search.steps[static_cast<size_t>(id.step) - 1], domain, now);
  std::vector<std::string> ids;
  for (const auto& each : called) ids.push_back(each.contact);
  TABELLA_CO_ASSIGN(const auto directory, co_await load_contacts(contacts, search.domain, std::move(ids)));
  for (const auto& each : called)
    if (const auto contact = directory.find(each.contact); contact != directory.end())
      step.tracks.push_back(track_of(each, contact->second, domain));
  co_return step;
}

void plan_step(Plan& plan, const schedule::Schedule& schedule, const std::string& table, const Search& search,
               const Step& step) {
  plan.writes.push_back(store::Put(table, to_item(step)).when(store::absent(kPartition)));
  AttemptId id{.round = step.round, .step = step.number, .track = 0};
  for (const auto& track : step.tracks) {
    ++id.track;
    if (track.contact != search.contact)
      plan.writes.push_back(store::Put(
          table, to_item(Listing{.list = track.contact, .search = search.id, .created = search.created})));
    if (!track.methods.empty() && !search.has_declined(track.contact))
      plan.set(schedule,
               attempt_timer(search.id, id, track, time_at(step.started) + track.methods.front().delay));
  }
  plan.set(schedule, next_timer(search, step));
}

}  // namespace tabella::manhunt

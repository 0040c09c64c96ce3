#include "manhunt/timeline.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace tabella::manhunt {

using std::chrono::milliseconds;
using store::Async;

namespace {

// How far one looks for the end of quiet hours.
constexpr int kDaysOfQuiet = 9;
// What is not finished by then keeps nothing waiting.
constexpr std::chrono::hours kLongestLate{24};

// Puts a search's rows and what is to come into one line.
class TimelineMaker {
 public:
  TimelineMaker(const FullSearch& search, const Domain& domain, const Directory& directory, TimePoint now,
                const std::optional<UsedLimits>& used)
      : full_(search), domain_(domain), directory_(directory), now_(now), used_(used) {}

  Timeline make() {
    timeline_.begins = time_at(full_.search.created);
    auto cursor = timeline_.begins;
    const auto& steps = full_.search.steps;
    for (int round = 1; round <= full_.search.repeat + 1; ++round) {
      auto last = cursor;  // when somebody is last asked in it
      for (int number = 1; number <= static_cast<int>(steps.size()); ++number) {
        const auto& step = steps[static_cast<size_t>(number) - 1];
        const auto* made = made_step(round, number);
        const auto begun = made ? time_at(made->started) : std::max(cursor, is_over() ? cursor : now_);
        last = std::max(last, add_step({.round = round, .step = number}, step, made, begun));
        cursor = begun + step.wait;
      }
      if (!steps.empty()) cursor = std::max(cursor, last + steps.back().wait);
      timeline_.rounds.push_back(cursor);
    }
    timeline_.ends = cursor;
    std::ranges::sort(timeline_.entries, {},
                      [](const TimelineEntry& entry) { return std::tuple(entry.at, entry.id); });
    return std::move(timeline_);
  }

 private:
  bool is_over() const { return full_.search.status != Status::active; }

  const Step* made_step(int round, int number) const {
    const auto found = std::ranges::find_if(
        full_.steps, [&](const Step& step) { return step.round == round && step.number == number; });
    return found == full_.steps.end() ? nullptr : &*found;
  }
  const Attempt* made_attempt(const AttemptId& id) const {
    const auto found = std::ranges::find(full_.attempts, id, &Attempt::id);
    return found == full_.attempts.end() ? nullptr : &*found;
  }

  // When somebody is last asked at it.
  TimePoint add_step(AttemptId id, const PolicyStep& step, const Step* made, TimePoint begun) {
    auto tracks = made ? made->tracks : std::vector<Track>();
    if (!made && !is_over())
      for (const auto& called : called_at(step, domain_, begun))
        if (const auto contact = directory_.find(called.contact); contact != directory_.end())
          tracks.push_back(track_of(called, contact->second, domain_));
    auto last = begun;
    id.track = 0;
    for (const auto& track : tracks) {
      ++id.track;
      last = std::max(last, add_track(id, track, begun));
    }
    return last;
  }

  TimePoint add_track(AttemptId id, const Track& track, TimePoint begun) {
    const bool declined = full_.search.has_declined(track.contact);
    const auto contact = directory_.find(track.contact);
    const bool can_wait = full_.search.low_urgency && contact != directory_.end();
    auto at = begun, last = begun;
    id.number = 0;
    for (const auto& method : track.methods) {
      ++id.number;
      const auto* made = made_attempt(id);
      if (!made && (declined || is_over())) break;
      at = made ? time_at(made->started) : std::max(at + method.delay, now_);
      if (!made && can_wait) at = after_quiet_hours(contact->second.contact, at);
      const auto* const known = method_of(contact, method.id);
      auto bundled = made ? bundle_of(*made) : known ? bundle_at(*known, at) : std::nullopt;
      if (bundled && can_wait && (!made || made->state == AttemptState::bundled))
        bundled = after_quiet_hours(contact->second.contact, *bundled);
      timeline_.entries.push_back({.id = id,
                                   .at = at,
                                   .contact = track.contact,
                                   .contact_name = track.name,
                                   .schedule = track.schedule,
                                   .method = method.id,
                                   .kind = method.kind,
                                   .destination = made    ? made->destination
                                                  : known ? known->destination
                                                          : std::string(),
                                   .made = made,
                                   .bundled = bundled});
      auto asked_at = made ? asked(*made) : at;
      if (made && can_wait && made->waits_for_next_try())
        asked_at = after_quiet_hours(contact->second.contact, asked_at);
      last = std::max({last, at, bundled.value_or(at), asked_at});
    }
    return last;
  }

  // What is under way may be tried once more.
  TimePoint asked(const Attempt& attempt) const {
    const auto at = time_at(attempt.asked());
    const bool forgotten = at + kLongestLate < now_;  // something has kept it from being finished
    return attempt.is_over() || is_over() || forgotten ? at : std::max(at, now_);
  }

  const Method* method_of(Directory::const_iterator contact, const std::string& method) const {
    if (contact == directory_.end()) return nullptr;
    const auto found = std::ranges::find(contact->second.methods, method, &Method::id);
    return found == contact->second.methods.end() ? nullptr : &*found;
  }

  static std::optional<TimePoint> bundle_of(const Attempt& attempt) {
    return attempt.bundle.empty() ? std::nullopt : std::optional(time_at(attempt.bundle_due));
  }

  // Counts an attempt that is to come. Those that were made are in `used_`, which is of now.
  std::optional<TimePoint> bundle_at(const Method& method, TimePoint at) {
    if (!used_ || method.limit.count == 0) return std::nullopt;
    const auto window = method.limit.window_of(at);
    auto [counted, is_new] = counted_.try_emplace({method.id, window}, 0);
    if (is_new && window == method.limit.window_of(now_))
      if (const auto used = used_->find(method.id); used != used_->end()) counted->second = used->second;
    if (++counted->second <= method.limit.count) return std::nullopt;
    return method.limit.bundle_due(window);
  }

  const FullSearch& full_;
  const Domain& domain_;
  const Directory& directory_;
  const TimePoint now_;
  const std::optional<UsedLimits>& used_;
  std::map<std::pair<std::string, int64_t>, int64_t> counted_;  // attempts, by method and window
  Timeline timeline_;
};

}  // namespace

std::vector<Called> called_at(const PolicyStep& step, const Domain& domain, TimePoint time) {
  std::vector<Called> called;
  for (const auto& target : step.targets) {
    auto contact = target.contact;
    if (contact.empty())
      if (const auto schedule = domain.schedules.find(target.schedule); schedule != domain.schedules.end())
        contact = on_call(schedule->second, time);
    if (contact.empty() || std::ranges::find(called, contact, &Called::contact) != called.end()) continue;
    called.push_back({.contact = std::move(contact), .schedule = target.schedule});
  }
  return called;
}

std::vector<std::string> contacts_of(const Search& search, const Domain& domain) {
  std::set<std::string> all;
  for (const auto& step : search.steps)
    for (const auto& target : step.targets) {
      if (!target.contact.empty()) all.insert(target.contact);
      const auto schedule = domain.schedules.find(target.schedule);
      if (schedule == domain.schedules.end()) continue;
      for (const auto& rotation : schedule->second.rotations)
        all.insert(rotation.contacts.begin(), rotation.contacts.end());
      for (const auto& each : schedule->second.overrides)
        if (!each.contact.empty()) all.insert(each.contact);
    }
  return {all.begin(), all.end()};
}

Async<Directory> load_contacts(Contacts& contacts, std::string domain, std::vector<std::string> ids) {
  Directory directory;
  for (auto& id : ids) {
    TABELLA_CO_ASSIGN(auto contact, co_await contacts.find_full(domain, id));
    if (contact) directory.emplace(std::move(id), std::move(*contact));
  }
  co_return directory;
}

Track track_of(const Called& called, const FullContact& contact, const Domain& domain) {
  Track track{.contact = called.contact, .name = contact.contact.name, .schedule = called.schedule};
  for (const auto& method : contact.methods)
    if (is_used(method, domain))
      track.methods.push_back({.id = method.id, .kind = method.kind, .delay = method.delay});
  return track;
}

bool is_used(const Method& method, const Domain& domain) {
  return method.enabled && (method.verified || !domain.uses_verified_only());
}

bool is_still_used(const std::optional<Method>& method, const Attempt& attempt, const Domain& domain) {
  return method && is_used(*method, domain) && method->destination == attempt.destination;
}

TimePoint after_quiet_hours(const Contact& contact, TimePoint time) {
  if (!contact.quiet) return time;
  const auto zone =
      TimeZone::find(contact.timezone.empty() ? "UTC" : contact.timezone).value_or(TimeZone::utc());
  if (!contact.quiet->contains(zone.local(time))) return time;
  const auto today = std::chrono::floor<std::chrono::days>(zone.local(time));
  // It ends with the window, or, where that is the whole day, with the day.
  for (int day = 0; day < kDaysOfQuiet; ++day)
    for (const auto edge : {0, contact.quiet->to}) {
      const auto local = today + std::chrono::days(day) + std::chrono::minutes(edge);
      const auto end = zone.at(local);
      // Where the clocks are put back it comes twice.
      for (const auto each : {end, end + std::chrono::hours(1)})
        if (each > time && (each == end || zone.local(each) == local) &&
            !contact.quiet->contains(zone.local(each)))
          return each;
    }
  return time;
}

Timeline timeline_of(const FullSearch& search, const Domain& domain, const Directory& directory,
                     TimePoint now, const std::optional<UsedLimits>& used) {
  return TimelineMaker(search, domain, directory, now, used).make();
}

}  // namespace tabella::manhunt

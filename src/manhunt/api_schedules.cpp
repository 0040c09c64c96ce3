// Schedules: who is on call.
#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/api.h"
#include "manhunt/calendar.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr const char* kScheduleExample =
    R"({"title": "Primary", "timezone": "Europe/Rome", "rotations": [{"contacts": ["…", "…"], "start": "2026-01-05T09:00:00", "unit": "week", "every": 1}]})";
constexpr const char* kPreviewExample =
    R"({"timezone": "Europe/Rome", "rotations": [{"contacts": ["ann", "bob"], "start": "2026-01-05T09:00:00", "unit": "week"}], "overrides": [], "from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"})";
constexpr const char* kOverrideExample =
    R"({"contact": "…", "from": "2026-11-18T09:00:00Z", "to": "2026-11-18T17:00:00Z"})";
constexpr std::chrono::days kCalendarBehind{30};
constexpr std::chrono::days kCalendarAhead{180};
constexpr std::chrono::days kUsualLook{30};

void answer_shifts(net::Call& call, const Checked<std::vector<Shift>>& all) {
  if (!all) return call.refuse(400, all.error().message);
  JsonObjectWriter object(call.answer_json());
  JsonArrayWriter list(object.key("shifts"));
  for (const auto& shift : *all) {
    JsonObjectWriter one(list.element());
    one.string("contact", shift.contact);
    one.string("from", time_text(shift.from));
    one.string("to", time_text(shift.to));
  }
}

// A moment; answers 400 where it is none.
TimePoint moment(net::Call& call, std::string_view name, std::string_view text, TimePoint otherwise) {
  if (text.empty()) return otherwise;
  const auto time = parse_time(text);
  if (!time) call.refuse(400, fmt::format("{}: expected a moment as in 2026-11-18T09:00:00Z", name));
  return time.value_or(otherwise);
}

// Answers 400 where it is too long.
bool can_look(net::Call& call, TimePoint from, TimePoint to) {
  if (from < to && to - from <= kLongestLook) return true;
  call.refuse(
      400, fmt::format("from and to: expected from before to, at most {} days apart", kLongestLook.count()));
  return false;
}

// The shift that somebody has at a moment, as far as 200 days to both sides.
std::optional<Shift> shift_at(const OnCallSchedule& schedule, TimePoint at) {
  std::optional<Shift> found;
  for (const auto around : {std::chrono::days(2), std::chrono::days(20), kLongestLook / 2}) {
    const auto from = at - around, to = at + around;
    const auto all = shifts(schedule, from, to);
    if (!all) return found;
    for (const auto& shift : *all)
      if (shift.from <= at && at < shift.to) found = shift;
    if (found && found->from > from && found->to < to) return found;
  }
  return found;
}

std::string calendar_signature(const std::string& secret, std::string_view domain,
                               std::string_view schedule) {
  return to_base64url(hmac_sha256(secret, fmt::format("calendar|{}|{}", domain, schedule)));
}

}  // namespace

void Api::add_schedule_routes(Routes& routes) {
  net::Route preview{"POST", "/manhunt/schedules/preview", "manhunt:read",
                     "Shows who would be on call by a schedule that is not kept"};
  preview.body = kPreviewExample;
  routes.add(std::move(preview), &Api::preview_schedule);
  routes.add(open_route("GET", "/manhunt/calendar/{token}", "A schedule as a calendar feed (iCalendar)",
                        "text/calendar"),
             &Api::calendar);
  const std::string schedules = "/manhunt/{domain}/schedules";
  routes.add(domain_route("GET", schedules, "Lists the schedules"), &Api::list_schedules);
  const auto schedule = schedules + "/{schedule}";
  routes.add(domain_route("GET", schedule, "Shows a schedule"), &Api::show_schedule);
  routes.add(domain_route("PUT", schedule, "Sets a schedule; its overrides stay", kScheduleExample),
             &Api::set_schedule);
  routes.add(domain_route("DELETE", schedule, "Removes a schedule"), &Api::remove_schedule);
  routes.add(domain_route("POST", schedule + "/overrides", "Puts somebody on call for a while, or nobody",
                          kOverrideExample),
             &Api::add_override);
  routes.add(domain_route("DELETE", schedule + "/overrides/{override}", "Removes an override"),
             &Api::remove_override);
  auto on_call_route = domain_route("GET", schedule + "/on-call", "Shows who is on call");
  on_call_route.query = {{"at", "when; now unless told"}};
  routes.add(std::move(on_call_route), &Api::show_on_call);
  auto shifts_route = domain_route("GET", schedule + "/shifts", "Shows who is on call from when to when");
  shifts_route.query = {{"from", "now unless told"}, {"to", "30 days later unless told; at most 400"}};
  routes.add(std::move(shifts_route), &Api::show_shifts);
  routes.add(domain_route("POST", schedule + "/calendar", "Gives the address of the calendar feed"),
             &Api::make_calendar);
}

awaitable<std::optional<OnCallSchedule>> Api::schedule_of(Call& call, const std::string& domain) {
  const auto view = co_await view_of(call, domain);
  if (!view) co_return std::nullopt;
  const auto found = (*view)->schedules.find(call.path("schedule"));
  if (found == (*view)->schedules.end()) {
    not_there(call, "schedule");
    co_return std::nullopt;
  }
  co_return found->second;
}

awaitable<void> Api::list_schedules(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  JsonObjectWriter object(call.answer_json());
  JsonObjectWriter all(object.key("schedules"));
  for (const auto& [id, schedule] : (*view)->schedules) {
    JsonObjectWriter one(all.key(id));
    write_schedule(one, schedule);
  }
}

awaitable<void> Api::show_schedule(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto schedule = co_await schedule_of(call, *domain);
  if (!schedule) co_return;
  JsonObjectWriter object(call.answer_json());
  object.string("id", call.path("schedule"));
  write_schedule(object, *schedule);
}

awaitable<void> Api::set_schedule(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto name = name_in(call, "schedule");
  if (!name) co_return;
  auto body = call.json(kScheduleExample);
  if (!body) co_return;
  for (const auto* member : {"title", "timezone", "rotations"}) body->any(member);
  body->no_others();
  if (call.answered()) co_return;
  JsonDocument document;
  auto schedule = read_schedule(*document.parse(call.request.body));
  if (!schedule) co_return call.refuse(400, schedule.error().message);
  const auto view = co_await view_of(call, *domain);
  if (!view || !has_room(call, **view, (*view)->schedules, Part::schedule, *name)) co_return;
  std::vector<std::string> ids;
  for (const auto& rotation : schedule->rotations)
    for (const auto& contact : rotation.contacts)
      if (std::ranges::find(ids, contact) == ids.end()) ids.push_back(contact);
  for (const auto& id : ids) {
    const auto contact = co_await parts_.contacts.find(*domain, id);
    if (!contact) co_return house::refuse(call, contact.error());
    if (!*contact)
      co_return call.refuse(400,
                            fmt::format("rotations: there is no contact {} in this domain", printable(id)));
  }
  if (!(*view)->schedules.contains(*name)) {
    std::string json;
    {
      JsonObjectWriter object(json);
      write_schedule(object, *schedule);
    }
    const auto put = co_await parts_.domains.put(*domain, Part::schedule, *name, std::move(json));
    if (!put) co_return house::refuse(call, put.error());
  } else {
    const auto changed =
        co_await parts_.domains.change_schedule(*domain, *name, [&](OnCallSchedule& now) -> Checked<void> {
          schedule->overrides = now.overrides;
          now = *schedule;
          return {};
        });
    if (!changed) co_return house::refuse(call, changed.error());
  }
  co_await show_schedule(call);
}

awaitable<void> Api::remove_schedule(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  if (const auto use = use_of_schedule(**view, call.path("schedule")); !use.empty())
    co_return call.refuse(409, fmt::format("the schedule is asked by {}: take it out there first", use));
  co_await remove_part(call, Part::schedule, "schedule", call.path("schedule"));
}

awaitable<void> Api::add_override(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto body = call.json(kOverrideExample);
  if (!body) co_return;
  Override added{.id = make_id('o'), .contact = body->text("contact", "")};
  added.from = moment(call, "from", body->text("from"), {});
  added.to = moment(call, "to", body->text("to"), {});
  body->no_others();
  if (!call.answered() && added.from >= added.to) call.refuse(400, "from and to: expected from before to");
  if (call.answered()) co_return;
  if (!added.contact.empty()) {
    const auto contact = co_await parts_.contacts.find(*domain, added.contact);
    if (!contact) co_return house::refuse(call, contact.error());
    if (!*contact) co_return call.refuse(400, "contact: there is none of that id in this domain");
  }
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  if ((*view)->overrides >= kMostOverridesOfDomain)
    co_return call.refuse(400, fmt::format("a domain has at most {} overrides: remove those that are over",
                                           kMostOverridesOfDomain));
  const auto now = parts_.clock.now();
  const auto changed = co_await parts_.domains.change_schedule(
      *domain, call.path("schedule"), [&](OnCallSchedule& schedule) -> Checked<void> {
        // Those that were over long ago make room.
        std::erase_if(schedule.overrides, [&](const Override& each) { return each.to < now - kLongestLook; });
        if (schedule.overrides.size() >= kMostOverrides)
          return invalid(fmt::format("a schedule has at most {} overrides: remove some", kMostOverrides));
        schedule.overrides.push_back(added);
        return {};
      });
  if (!changed) co_return house::refuse(call, changed.error());
  if (!*changed) co_return not_there(call, "schedule");
  JsonObjectWriter object(call.answer_json(201));
  object.string("id", added.id);
  object.string("contact", added.contact);
  object.string("from", time_text(added.from));
  object.string("to", time_text(added.to));
}

awaitable<void> Api::remove_override(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  bool was_there = false;
  const auto changed = co_await parts_.domains.change_schedule(
      *domain, call.path("schedule"), [&](OnCallSchedule& schedule) -> Checked<void> {
        was_there = std::erase_if(schedule.overrides,
                                  [&](const Override& each) { return each.id == call.path("override"); }) > 0;
        return {};
      });
  if (!changed) co_return house::refuse(call, changed.error());
  if (!*changed || !was_there) co_return not_there(call, "override");
  call.response.status = 204;
}

awaitable<void> Api::show_on_call(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto at = moment(call, "at", call.text("at"), parts_.clock.now());
  if (call.answered()) co_return;
  const auto schedule = co_await schedule_of(call, *domain);
  if (!schedule) co_return;
  const auto contact = on_call(*schedule, at);
  JsonObjectWriter object(call.answer_json());
  if (contact.empty()) {
    object.key("contact").append("null");
    co_return;
  }
  object.string("contact", contact);
  if (const auto shift = co_await parts_.long_work.run([&] { return shift_at(*schedule, at); })) {
    // Where one looks no further it may well go on.
    if (shift->from > at - kLongestLook / 2) object.string("since", time_text(shift->from));
    if (shift->to < at + kLongestLook / 2) object.string("until", time_text(shift->to));
  }
}

awaitable<void> Api::show_shifts(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto from = moment(call, "from", call.text("from"), parts_.clock.now());
  const auto to = moment(call, "to", call.text("to"), from + kUsualLook);
  if (call.answered() || !can_look(call, from, to)) co_return;
  const auto schedule = co_await schedule_of(call, *domain);
  if (schedule)
    answer_shifts(call, co_await parts_.long_work.run([&] { return shifts(*schedule, from, to); }));
}

awaitable<void> Api::preview_schedule(Call& call) {
  auto body = call.json(kPreviewExample);
  if (!body) co_return;
  const auto from = moment(call, "from", body->text("from"), {});
  const auto to = moment(call, "to", body->text("to"), {});
  for (const auto* member : {"title", "timezone", "rotations", "overrides"}) body->any(member);
  body->no_others();
  if (call.answered() || !can_look(call, from, to)) co_return;
  JsonDocument document;
  const auto schedule = read_schedule(*document.parse(call.request.body));
  if (!schedule) co_return call.refuse(400, schedule.error().message);
  answer_shifts(call, co_await parts_.long_work.run([&] { return shifts(*schedule, from, to); }));
}

// Calendars cannot send credentials: the address is one.
awaitable<void> Api::make_calendar(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto schedule = co_await schedule_of(call, *domain);
  if (!schedule) co_return;
  const auto secret = co_await parts_.domains.secret(*domain);
  if (!secret) co_return house::refuse(call, secret.error());
  const auto& id = call.path("schedule");
  JsonObjectWriter(call.answer_json())
      .string("url", fmt::format("{}/manhunt/calendar/{}~{}~{}.ics", parts_.base, *domain, id,
                                 calendar_signature(*secret, *domain, id)));
}

awaitable<void> Api::calendar(Call& call) {
  auto token = std::string_view(call.path("token"));
  if (token.ends_with(".ics")) token.remove_suffix(4);
  const auto parts = split(token, '~');
  const auto refuse = [&] { call.refuse(404, "there is no such calendar"); };
  if (parts.size() != 3) co_return refuse();
  const std::string domain(parts[0]), id(parts[1]);
  if (!problem_with_name("domain", domain).empty()) co_return refuse();
  const auto view = co_await parts_.domains.find(domain);
  if (!view) co_return house::refuse(call, view.error());
  if ((*view)->secret.empty()) co_return refuse();
  const auto secret = co_await parts_.domains.secret(domain);
  if (!secret) co_return house::refuse(call, secret.error());
  if (!equal_in_constant_time(calendar_signature(*secret, domain, id), parts[2])) co_return refuse();
  const auto schedule = (*view)->schedules.find(id);
  if (schedule == (*view)->schedules.end()) co_return refuse();
  std::map<std::string, std::string> names;
  for (const auto& rotation : schedule->second.rotations)
    for (const auto& contact : rotation.contacts) names[contact];
  for (const auto& each : schedule->second.overrides) names[each.contact];
  for (auto& [contact, name] : names) {
    const auto found = co_await parts_.contacts.find(domain, contact);
    if (!found) co_return house::refuse(call, found.error());
    name = *found ? (*found)->name : contact;
  }
  // Whole days, so that the feed is the same all day long.
  const auto today = std::chrono::floor<std::chrono::days>(parts_.clock.now());
  auto feed = co_await parts_.long_work.run([&] {
    return calendar_of(schedule->second, id, names, today - kCalendarBehind, today + kCalendarAhead);
  });
  if (!feed) co_return call.refuse(400, feed.error().message);
  call.response.content_type = "text/calendar; charset=utf-8";
  call.response.body = std::move(*feed);
}

}  // namespace tabella::manhunt

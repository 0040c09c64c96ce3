#include "manhunt/rotation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"

namespace tabella::manhunt {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr std::array<std::string_view, 7> kDayNames = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr size_t kMostRotations = 20;
constexpr size_t kMostInRotation = 100;
constexpr size_t kMostScheduleTitle = 200;
constexpr size_t kLongestContactId = 64;
constexpr size_t kMostBoundaries = 40'000;
constexpr size_t kMostQuestions = 4 * kMostBoundaries;  // each rotation is asked at each boundary

// 0: Monday.
unsigned weekday_of(std::chrono::local_days day) { return std::chrono::weekday(day).iso_encoding() - 1; }

bool has_day(unsigned set, std::chrono::local_days day) { return (set >> weekday_of(day)) & 1; }

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The handoffs of a rotation, by number; 0 is its start.
class Handoffs {
 public:
  Handoffs(const Rotation& rotation, const TimeZone& zone)
      : zone_(zone), start_(rotation.start), first_(zone.at(rotation.start)), every_(rotation.every) {
    if (rotation.unit == Rotation::Unit::hour)
      hours_ = hours(every_);
    else
      days_ = rotation.unit == Rotation::Unit::week ? 7 * every_ : every_;
  }

  TimePoint at(int64_t number) const {
    if (days_ == 0) return first_ + number * hours_;
    return zone_.at(start_ + number * days(days_));
  }

  // The last one that is not after `time`; negative: there is none.
  int64_t last(TimePoint time) const {
    if (days_ == 0) return floor_divide((time - first_).count(), TimePoint::duration(hours_).count());
    const auto since = zone_.local(time) - start_;
    // Clocks that are put forward or back make it one more or less.
    auto number = floor_divide(since.count(), std::chrono::seconds(days(days_)).count()) + 1;
    while (number >= 0 && at(number) > time) --number;
    return number;
  }

 private:
  const TimeZone& zone_;
  const LocalTime start_;
  const TimePoint first_;
  const int every_;
  int days_ = 0;
  hours hours_{0};
};

std::string_view on_call_by(const Rotation& rotation, const TimeZone& zone, TimePoint time) {
  const auto number = Handoffs(rotation, zone).last(time);
  if (number < 0) return {};
  if (rotation.between && !rotation.between->contains(zone.local(time))) return {};
  return rotation.contacts[static_cast<size_t>(number) % rotation.contacts.size()];
}

// When somebody else may be on call than before.
class Boundaries {
 public:
  Boundaries(const OnCallSchedule& schedule, TimePoint from, TimePoint to)
      : schedule_(schedule), from_(from), to_(to) {
    for (const auto& rotation : schedule.rotations) {
      add_handoffs(rotation);
      if (rotation.between) add_windows(*rotation.between);
    }
    for (const auto& one : schedule.overrides) {
      add(one.from);
      add(one.to);
    }
    add_changes();
    all_.push_back(from);
    std::ranges::sort(all_);
    all_.erase(std::ranges::unique(all_).begin(), all_.end());
  }
  const std::vector<TimePoint>& all() const { return all_; }
  // Then some were left out.
  bool are_too_many() const { return too_many_; }

 private:
  void add(TimePoint time) {
    if (time <= from_ || time >= to_) return;
    too_many_ = too_many_ || all_.size() >= kMostBoundaries;
    if (!too_many_) all_.push_back(time);
  }
  void add_handoffs(const Rotation& rotation) {
    const Handoffs handoffs(rotation, schedule_.zone);
    for (auto number = std::max<int64_t>(0, handoffs.last(from_));; ++number) {
      const auto at = handoffs.at(number);
      if (at >= to_ || too_many_) break;
      add(at);
    }
  }
  void add_windows(const DailyWindow& window) {
    const auto last = std::chrono::floor<days>(schedule_.zone.local(to_));
    for (auto day = std::chrono::floor<days>(schedule_.zone.local(from_)) - days(1); day <= last;
         day += days(1))
      for (const auto edge : {window.from, window.to, 0}) add_local(day + minutes(edge));
  }
  // A time that comes twice is an edge twice.
  void add_local(LocalTime local) {
    const auto time = schedule_.zone.at(local);
    add(time);
    const auto change = schedule_.zone.next_change(time - std::chrono::seconds(1));
    if (!change || *change > time + hours(26)) return;
    const auto offset = [&](TimePoint at) {
      return schedule_.zone.local(at).time_since_epoch() -
             std::chrono::floor<std::chrono::seconds>(at).time_since_epoch();
    };
    const auto again = time + (offset(*change - std::chrono::seconds(1)) - offset(*change));
    if (again > time && again >= *change) add(again);
  }
  void add_changes() {
    auto at = from_;
    while (const auto change = schedule_.zone.next_change(at)) {
      if (*change >= to_) break;
      add(*change);
      at = *change;
    }
  }

  const OnCallSchedule& schedule_;
  const TimePoint from_;
  const TimePoint to_;
  std::vector<TimePoint> all_;
  bool too_many_ = false;
};

Checked<Rotation> read_rotation(JsonValue json) {
  if (!json.is_object()) return invalid("rotations: expected a list of objects");
  Rotation rotation;
  for (JsonElements each(json); each.next();) {
    const auto name = each.key();
    const auto value = each.value();
    const bool is_text = value.kind() == JsonValue::Kind::string;
    if (name == "contacts" && value.kind() == JsonValue::Kind::array) {
      for (JsonElements contacts(value); contacts.next();) {
        if (contacts.value().kind() != JsonValue::Kind::string || contacts.value().string().empty() ||
            contacts.value().string().size() > kLongestContactId)
          return invalid("rotations: contacts: expected a list of ids of contacts");
        rotation.contacts.emplace_back(contacts.value().string());
      }
    } else if (name == "start" && is_text) {
      const auto start = parse_local_time(value.string());
      if (!start) return invalid("rotations: start: expected a local time as in 2026-01-05T09:00:00");
      rotation.start = *start;
    } else if (name == "unit" && is_text) {
      const auto unit = value.string();
      if (unit != "hour" && unit != "day" && unit != "week")
        return invalid("rotations: unit: expected hour, day or week");
      rotation.unit = unit == "hour"  ? Rotation::Unit::hour
                      : unit == "day" ? Rotation::Unit::day
                                      : Rotation::Unit::week;
    } else if (name == "every" && value.kind() == JsonValue::Kind::integer) {
      rotation.every = static_cast<int>(std::clamp<int64_t>(value.integer(), 0, 10'000));
    } else if (name == "between" && value.is_object()) {
      TABELLA_ASSIGN(rotation.between, read_window(value));
    } else {
      return invalid(fmt::format("rotations: {} is not known here, or not of its type", printable(name)));
    }
  }
  if (rotation.contacts.empty() || rotation.contacts.size() > kMostInRotation)
    return invalid(fmt::format("rotations: contacts: expected 1 to {} ids", kMostInRotation));
  if (rotation.every < 1 || rotation.every > 1000) return invalid("rotations: every: expected 1 to 1000");
  if (rotation.start == LocalTime{})
    return invalid("rotations: start: expected a local time as in 2026-01-05T09:00:00");
  return rotation;
}

Checked<Override> read_override(JsonValue json) {
  const auto from = parse_time(json.is_object() ? json.text("from") : "");
  const auto to = parse_time(json.is_object() ? json.text("to") : "");
  if (!from || !to || *to <= *from)
    return invalid("overrides: expected from and to as in 2026-11-18T09:00:00Z, from before to");
  if (json.text("contact").size() > kLongestContactId)
    return invalid("overrides: contact: expected the id of a contact");
  return Override{.id = std::string(json.text("id")),
                  .contact = std::string(json.text("contact")),
                  .from = *from,
                  .to = *to};
}

}  // namespace

bool DailyWindow::contains(LocalTime time) const {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const auto at = std::chrono::floor<minutes>(time - day).count();
  if (from == to) return has_day(days, day);
  if (from < to) return at >= from && at < to && has_day(days, day);
  return (at >= from && has_day(days, day)) || (at < to && has_day(days, day - std::chrono::days(1)));
}

std::string on_call(const OnCallSchedule& schedule, TimePoint time) {
  for (auto one = schedule.overrides.rbegin(); one != schedule.overrides.rend(); ++one)
    if (one->from <= time && time < one->to) return one->contact;
  for (auto one = schedule.rotations.rbegin(); one != schedule.rotations.rend(); ++one)
    if (const auto contact = on_call_by(*one, schedule.zone, time); !contact.empty())
      return std::string(contact);
  return {};
}

Checked<std::vector<Shift>> shifts(const OnCallSchedule& schedule, TimePoint from, TimePoint to) {
  to = std::min(to, from + kLongestLook);
  std::vector<Shift> found;
  if (to <= from) return found;
  const Boundaries boundaries(schedule, from, to);
  if (boundaries.are_too_many() ||
      boundaries.all().size() * std::max<size_t>(1, schedule.rotations.size()) > kMostQuestions)
    return invalid("from and to: there are too many shifts between them; ask for a shorter time");
  for (size_t i = 0; i < boundaries.all().size(); ++i) {
    const auto begin = boundaries.all()[i];
    const auto end = i + 1 < boundaries.all().size() ? boundaries.all()[i + 1] : to;
    auto contact = on_call(schedule, begin);
    if (contact.empty()) continue;
    if (!found.empty() && found.back().contact == contact && found.back().to == begin)
      found.back().to = end;
    else
      found.push_back({std::move(contact), begin, end});
  }
  return found;
}

Checked<DailyWindow> read_window(JsonValue json) {
  DailyWindow window;
  for (JsonElements each(json); each.next();) {
    if (each.key() == "from" || each.key() == "to") {
      const auto time =
          parse_time_of_day(each.value().kind() == JsonValue::Kind::string ? each.value().string() : "");
      if (!time) return invalid(fmt::format("{}: expected a time of day as in 09:30", each.key()));
      (each.key() == "from" ? window.from : window.to) = *time;
    } else if (each.key() == "days" && each.value().kind() == JsonValue::Kind::array) {
      window.days = 0;
      for (JsonElements names(each.value()); names.next();) {
        const auto name = names.value().kind() == JsonValue::Kind::string ? names.value().string() : "";
        const auto* const day = std::ranges::find(kDayNames, name);
        if (day == kDayNames.end())
          return invalid("days: expected a list of mon, tue, wed, thu, fri, sat, sun");
        window.days |= 1u << (day - kDayNames.begin());
      }
      if (window.days == 0) return invalid("days: expected at least one");
    } else {
      return invalid(fmt::format("{} is not known here", printable(each.key())));
    }
  }
  return window;
}

void write_window(std::string& out, const DailyWindow& window) {
  JsonObjectWriter object(out);
  object.string("from", time_of_day_text(window.from));
  object.string("to", time_of_day_text(window.to));
  if (window.days == 0x7f) return;
  JsonArrayWriter names(object.key("days"));
  for (size_t day = 0; day < kDayNames.size(); ++day)
    if ((window.days >> day) & 1) append_json_string(names.element(), kDayNames[day]);
}

Checked<OnCallSchedule> read_schedule(JsonValue json) {
  OnCallSchedule schedule;
  for (const auto* member : {"title", "timezone"})
    if (const auto value = json.find(member); value && value->kind() != JsonValue::Kind::string)
      return invalid(fmt::format("{}: expected a text", member));
  schedule.title = json.text("title");
  if (schedule.title.size() > kMostScheduleTitle)
    return invalid(fmt::format("title: at most {} bytes", kMostScheduleTitle));
  const auto zone = json.text("timezone");
  auto found = TimeZone::find(zone.empty() ? "UTC" : zone);
  if (!found)
    return invalid(
        fmt::format("timezone: {} is no time zone; expected a name as in Europe/Rome", printable(zone)));
  schedule.zone = std::move(*found);
  if (const auto rotations = json.find("rotations")) {
    if (rotations->kind() != JsonValue::Kind::array) return invalid("rotations: expected a list");
    for (JsonElements each(*rotations); each.next();) {
      TABELLA_ASSIGN(auto rotation, read_rotation(each.value()));
      schedule.rotations.push_back(std::move(rotation));
    }
  }
  if (const auto overrides = json.find("overrides")) {
    if (overrides->kind() != JsonValue::Kind::array) return invalid("overrides: expected a list");
    for (JsonElements each(*overrides); each.next();) {
      TABELLA_ASSIGN(auto one, read_override(each.value()));
      schedule.overrides.push_back(std::move(one));
    }
  }
  if (schedule.rotations.size() > kMostRotations)
    return invalid(fmt::format("rotations: at most {}", kMostRotations));
  if (schedule.overrides.size() > kMostOverrides)
    return invalid(fmt::format("overrides: at most {}; remove those that are over", kMostOverrides));
  return schedule;
}

void write_schedule(JsonObjectWriter& out, const OnCallSchedule& schedule) {
  out.string("title", schedule.title);
  out.string("timezone", schedule.zone.name());
  {
    JsonArrayWriter rotations(out.key("rotations"));
    for (const auto& rotation : schedule.rotations) {
      JsonObjectWriter one(rotations.element());
      {
        JsonArrayWriter contacts(one.key("contacts"));
        for (const auto& contact : rotation.contacts) append_json_string(contacts.element(), contact);
      }
      one.string("start", local_time_text(rotation.start));
      one.string("unit", rotation.unit == Rotation::Unit::hour  ? "hour"
                         : rotation.unit == Rotation::Unit::day ? "day"
                                                                : "week");
      one.number("every", int64_t{rotation.every});
      if (rotation.between) write_window(one.key("between"), *rotation.between);
    }
  }
  JsonArrayWriter overrides(out.key("overrides"));
  for (const auto& each : schedule.overrides) {
    JsonObjectWriter one(overrides.element());
    one.string("id", each.id);
    one.string("contact", each.contact);
    one.string("from", time_text(each.from));
    one.string("to", time_text(each.to));
  }
}

}  // namespace tabella::manhunt

// Who is on call: rotations in a time zone, and overrides. Pure: no store, no clock.
//
// Hours are elapsed time. Days and weeks are those of the calendar: a handoff is at the same time on the wall
// through DST; one that falls into the gap of spring is when the clocks are put forward, and of one that
// comes twice in autumn the first counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "manhunt/time_zone.h"

namespace tabella::manhunt {

// Times of day, on the wall, at which a rotation counts. Where `from` is later than `to` it goes over
// midnight, and belongs to the day on which it began; where they are equal it is the whole day.
struct DailyWindow {
  int from = 0;  // minutes since midnight
  int to = 0;
  unsigned days = 0x7f;  // bit 0: Monday

  bool contains(LocalTime time) const;
  bool is_always() const { return (from == to || (from == 0 && to == 24 * 60)) && days == 0x7f; }
};

struct Rotation {
  enum class Unit { hour, day, week };
  std::vector<std::string> contacts;  // in their order
  LocalTime start;                    // nobody before
  Unit unit = Unit::week;
  int every = 1;
  std::optional<DailyWindow> between;
};

struct Override {
  std::string id;
  std::string contact;  // empty: nobody
  TimePoint from;
  TimePoint to;
};

// Of several rotations the last that has somebody counts; an override counts before all of them, the one that
// was added last before others.
inline constexpr size_t kMostOverrides = 500;  // of a schedule

struct OnCallSchedule {
  std::string title;
  TimeZone zone = TimeZone::utc();
  std::vector<Rotation> rotations;
  std::vector<Override> overrides;
};

struct Shift {
  std::string contact;
  TimePoint from;
  TimePoint to;
};

inline constexpr std::chrono::days kLongestLook{400};

// Nobody: empty.
std::string on_call(const OnCallSchedule& schedule, TimePoint time);
// Who is on call from when to when, where somebody is; at most kLongestLook. An error: it changes so often
// that a shorter time is to be asked for.
Checked<std::vector<Shift>> shifts(const OnCallSchedule& schedule, TimePoint from, TimePoint to);

// As JSON has it, with its overrides. An error says what is wrong.
Checked<OnCallSchedule> read_schedule(JsonValue json);
void write_schedule(JsonObjectWriter& out, const OnCallSchedule& schedule);
// {"from": "22:00", "to": "07:00", "days": […]}
Checked<DailyWindow> read_window(JsonValue json);
void write_window(std::string& out, const DailyWindow& window);

}  // namespace tabella::manhunt

// Time zones of the tz database, through DST: what the clocks on the wall show at a moment, and when they
// show a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tabella::manhunt {

// A time as clocks on the wall show it, with no zone; to the second.
using LocalTime = std::chrono::local_seconds;

// Shared by its copies; thread-safe.
class TimeZone {
 public:
  // "Europe/Rome"; nothing if the tz database has none of that name.
  static std::optional<TimeZone> find(std::string_view name);
  static TimeZone utc();

  const std::string& name() const { return name_; }
  LocalTime local(TimePoint time) const;
  // When clocks show that. Of a time that comes twice the first; of one that is left out, when the clocks
  // are put forward over it.
  TimePoint at(LocalTime local) const;
  // When the clocks are next put forward or back after `time`; nothing: never.
  std::optional<TimePoint> next_change(TimePoint time) const;

 private:
  struct Impl;
  TimeZone(std::string name, std::shared_ptr<const Impl> impl)
      : name_(std::move(name)), impl_(std::move(impl)) {}

  std::string name_;
  std::shared_ptr<const Impl> impl_;
};

// "2026-01-05T09:00:00" or "2026-01-05T09:00".
std::optional<LocalTime> parse_local_time(std::string_view text);
std::string local_time_text(LocalTime time);

// "09:30", in minutes since midnight; "24:00" is the end of the day.
std::optional<int> parse_time_of_day(std::string_view text);
std::string time_of_day_text(int minutes);

}  // namespace tabella::manhunt

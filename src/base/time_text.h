// Moments as programs write them (RFC 3339).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tabella {

// 2026-11-18T09:30:00.125Z, with milliseconds.
std::string time_text(TimePoint time);

// Any offset and any number of digits behind the second; to the millisecond. Nothing if it is no moment, or
// not from the years 1700 to 2199.
std::optional<TimePoint> parse_time(std::string_view text);

}  // namespace tabella

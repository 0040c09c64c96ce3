// Lengths of time as people write them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tabella {

// 150ms, 5s, 30m, 12h, 7d, 2w, or seconds without a unit. Nothing if it is none, or longer than a century.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// The same the other way: in the largest unit that it is a whole number of, up to days.
std::string duration_text(std::chrono::milliseconds length);

}  // namespace tabella

#include "base/duration.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tabella {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}, {"w", 7 * 86400e3}};
  constexpr double kLongest = 4e12;
  double unit = 1e3;
  for (const auto& [name, factor] : kUnits)
    if (text.ends_with(name)) {
      text.remove_suffix(name.size());
      unit = factor;
      break;
    }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !std::isfinite(value) || value < 0 || value * unit > kLongest) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(value * unit));
}

std::string duration_text(std::chrono::milliseconds length) {
  static constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}};
  for (const auto& [name, unit] : kUnits)
    if (length.count() % unit == 0 && length.count() != 0)
      return fmt::format("{}{}", length.count() / unit, name);
  return fmt::format("{}ms", length.count());
}

}  // namespace tabella

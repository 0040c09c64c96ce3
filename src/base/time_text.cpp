#include "base/time_text.h"

#include <charconv>

#include <fmt/format.h>

namespace tabella {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// What a TimePoint can tell, with room for what is added to it.
constexpr int kFirstYear = 1700;
constexpr int kLastYear = 2199;

// Takes a number of so many digits off the front.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  int value = 0;
  if (text.size() < count) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + count, value);
  if (error != std::errc{} || end != text.data() + count || value < 0) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

bool take_char(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<milliseconds> take_fraction(std::string_view& text) {
  if (!take_char(text, '.')) return milliseconds{0};
  int value = 0;
  size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1))
    if (digits++ < 3) value = value * 10 + (text.front() - '0');
  if (digits == 0) return std::nullopt;
  for (; digits < 3; ++digits) value *= 10;
  return milliseconds{value};
}

std::optional<minutes> take_offset(std::string_view& text) {
  if (take_char(text, 'Z') || take_char(text, 'z')) return minutes{0};
  const bool behind = text.starts_with('-');
  if (!behind && !text.starts_with('+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hour = take_digits(text, 2);
  if (!hour || !take_char(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  const minutes offset{*hour * 60 + *minute};
  return behind ? -offset : offset;
}

}  // namespace

std::string time_text(TimePoint time) {
  using namespace std::chrono;
  const auto at = floor<milliseconds>(time);
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss clock(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<TimePoint> parse_time(std::string_view text) {
  using namespace std::chrono;
  const auto y = take_digits(text, 4);
  if (!y || !take_char(text, '-')) return std::nullopt;
  const auto m = take_digits(text, 2);
  if (!m || !take_char(text, '-')) return std::nullopt;
  const auto d = take_digits(text, 2);
  if (!d || !(take_char(text, 'T') || take_char(text, 't') || take_char(text, ' '))) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || !take_char(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || !take_char(text, ':')) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second) return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto offset = take_offset(text);
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*m)}, day{static_cast<unsigned>(*d)}};
  if (!fraction || !offset || !text.empty() || !date.ok() || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  if (*y < kFirstYear || *y > kLastYear) return std::nullopt;
  return TimePoint{sys_days{date}} + hours{*hour} + minutes{*minute} + seconds{*second} + *fraction - *offset;
}

}  // namespace tabella

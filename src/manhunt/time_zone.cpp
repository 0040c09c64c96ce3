#include "manhunt/time_zone.h"

#include <algorithm>
#include <charconv>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>

namespace tabella::manhunt {
namespace {

absl::CivilSecond to_civil(LocalTime local) {
  return absl::CivilSecond(1970, 1, 1) + local.time_since_epoch().count();
}

LocalTime to_local(absl::CivilSecond civil) {
  return LocalTime(std::chrono::seconds(civil - absl::CivilSecond(1970, 1, 1)));
}

std::optional<int> number_in(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  const auto part = text.substr(at, digits);
  if (!std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  int value = 0;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

}  // namespace

struct TimeZone::Impl {
  absl::TimeZone zone;
};

std::optional<TimeZone> TimeZone::find(std::string_view name) {
  // A name and nothing else: not the path of a file, and not what the library makes of "localtime".
  const bool is_name = !name.empty() && name.size() <= 64 && !name.contains("..") && name.front() != '/' &&
                       std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                c == '/' || c == '_' || c == '-' || c == '+';
                       });
  auto impl = std::make_shared<Impl>();
  if (!is_name || name == "localtime" || !absl::LoadTimeZone(std::string(name), &impl->zone))
    return std::nullopt;
  return TimeZone(std::string(name), std::move(impl));
}

TimeZone TimeZone::utc() {
  return TimeZone("UTC", std::make_shared<Impl>(Impl{.zone = absl::UTCTimeZone()}));
}

LocalTime TimeZone::local(TimePoint time) const {
  return to_local(impl_->zone.At(absl::FromChrono(time)).cs);
}

TimePoint TimeZone::at(LocalTime local) const {
  const auto found = impl_->zone.At(to_civil(local));
  const auto time = found.kind == absl::TimeZone::TimeInfo::SKIPPED ? found.trans : found.pre;
  return absl::ToChronoTime(time);
}

std::optional<TimePoint> TimeZone::next_change(TimePoint time) const {
  absl::TimeZone::CivilTransition change;
  if (!impl_->zone.NextTransition(absl::FromChrono(time), &change)) return std::nullopt;
  return absl::ToChronoTime(impl_->zone.At(change.to).trans);
}

std::optional<LocalTime> parse_local_time(std::string_view text) {
  const bool brief = text.size() == 16;
  if ((!brief && text.size() != 19) || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
      text[13] != ':' || (!brief && text[16] != ':'))
    return std::nullopt;
  const auto year = number_in(text, 0, 4), month = number_in(text, 5, 2), day = number_in(text, 8, 2);
  const auto hour = number_in(text, 11, 2), minute = number_in(text, 14, 2);
  const auto second = brief ? std::optional(0) : number_in(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const absl::CivilSecond civil(*year, *month, *day, *hour, *minute, *second);
  // What is out of its range would have been carried over.
  const bool is_one = civil.month() == *month && civil.day() == *day && civil.hour() == *hour &&
                      civil.minute() == *minute && civil.second() == *second;
  if (!is_one || *year < 1970 || *year > 2199) return std::nullopt;
  return to_local(civil);
}

std::string local_time_text(LocalTime time) {
  const auto civil = to_civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", civil.year(), civil.month(), civil.day(),
                     civil.hour(), civil.minute(), civil.second());
}

std::optional<int> parse_time_of_day(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = number_in(text, 0, 2), minute = number_in(text, 3, 2);
  if (!hour || !minute || *minute > 59 || *hour > 24 || (*hour == 24 && *minute > 0)) return std::nullopt;
  return *hour * 60 + *minute;
}

std::string time_of_day_text(int minutes) { return fmt::format("{:02}:{:02}", minutes / 60, minutes % 60); }

}  // namespace tabella::manhunt

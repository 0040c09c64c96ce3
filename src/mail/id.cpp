#include "mail/id.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "base/ids.h"

namespace tabella::mail {
namespace {

constexpr size_t kDigits = 19;  // from 2001 to 2262

Nanoseconds length_of(Granularity granularity) {
  switch (granularity) {
    case Granularity::day: return 86400 * kSecond;
    case Granularity::half_day: return 43200 * kSecond;
    case Granularity::hour: return 3600 * kSecond;
  }
  return 86400 * kSecond;
}

std::tm utc_of(Nanoseconds created) {
  const auto seconds = static_cast<std::time_t>(created / kSecond);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return utc;
}

std::string format(const std::tm& utc, const char* how) {
  char buffer[64];
  return {buffer, std::strftime(buffer, sizeof buffer, how, &utc)};
}

// Behind the digits that an id begins with; as it is, if something else stands there.
std::string with_separator(std::string_view id, char wanted) {
  std::string spelled(id);
  const auto at = spelled.find_first_not_of("0123456789");
  if (at != 0 && at != std::string::npos && (spelled[at] == '|' || spelled[at] == '~')) spelled[at] = wanted;
  return spelled;
}

}  // namespace

std::string url_spelling(std::string_view id) { return with_separator(id, '~'); }
std::string id_of_spelling(std::string_view spelled) { return with_separator(spelled, '|'); }

std::string id_prefix(Nanoseconds created) {
  return fmt::format("{:019}", std::max<Nanoseconds>(created, 0));
}

std::string make_id(Nanoseconds created, const std::string& hostname) {
  return fmt::format("{}|{:016x}@{}", id_prefix(created), random_bits(), hostname);
}

std::optional<Nanoseconds> created_of(std::string_view id) {
  Nanoseconds created = 0;
  const auto bar = id.find('|');
  if (bar > kDigits || bar == 0 || id.size() > 512) return std::nullopt;  // nowhere is beyond all digits
  const auto [end, error] = std::from_chars(id.data(), id.data() + bar, created);
  if (error != std::errc{} || end != id.data() + bar || created < 0) return std::nullopt;
  return created;
}

std::string_view short_id(std::string_view id) {
  const auto bar = id.find('|');
  return bar == std::string_view::npos ? id : id.substr(bar + 1);
}

std::string partition_of(Nanoseconds created, Granularity granularity) {
  const auto utc = utc_of(created);
  switch (granularity) {
    case Granularity::day: return format(utc, "%Y-%m-%d");
    case Granularity::half_day: return format(utc, "%Y-%m-%d") + (utc.tm_hour < 12 ? "am" : "pm");
    case Granularity::hour: return format(utc, "%Y-%m-%dT%H");
  }
  return {};
}

std::vector<std::string> partitions_between(Nanoseconds from, Nanoseconds to, Granularity granularity) {
  const auto length = length_of(granularity);
  std::vector<std::string> partitions;
  for (auto begin = from / length; begin <= to / length; ++begin)
    partitions.push_back(partition_of(begin * length, granularity));
  return partitions;
}

std::string time_text(Nanoseconds created) {
  auto text = format(utc_of(created), "%Y-%m-%dT%H:%M:%S");
  if (const auto fraction = created % kSecond; fraction > 0) {
    auto digits = fmt::format(".{:09}", fraction);
    while (digits.ends_with('0')) digits.pop_back();
    text += digits;
  }
  return text + "Z";
}

std::string mail_date(Nanoseconds created) { return format(utc_of(created), "%a, %d %b %Y %H:%M:%S +0000"); }

}  // namespace tabella::mail

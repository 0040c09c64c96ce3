#include "inbox/names.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/text.h"
#include "store/rows.h"

namespace tabella::inbox {
namespace {

constexpr size_t kMostName = 128;
constexpr size_t kMostCategory = 64;
constexpr size_t kTimeDigits = 9;
constexpr size_t kRestDigits = 2;
constexpr size_t kRandomDigits = 8;
constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr const char* kEverybody = "$public";

std::string base36(uint64_t number, size_t digits) {
  std::string text(digits, '0');
  for (auto at = text.rbegin(); at != text.rend(); ++at, number /= kDigits.size())
    *at = kDigits[number % kDigits.size()];
  return text;
}

std::string problem_with_text(std::string_view what, std::string_view name, size_t most) {
  if (name.empty()) return fmt::format("{}: must not be empty", what);
  if (name.size() > most) return fmt::format("{}: must not be longer than {} bytes", what, most);
  if (name.contains('#') || printable(name) != name)
    return fmt::format("{}: must be UTF-8 without # and without control characters", what);
  return {};
}

}  // namespace

std::string Box::partition() const {
  return user == kEverybody ? fmt::format("t#{}G#{}#{}", place.tenant, user, place.inbox)
                            : fmt::format("t#{}U#{}#{}", place.tenant, user, place.inbox);
}

bool Box::is_public() const { return user == kEverybody; }

Box public_box(const Place& place) { return {.place = place, .user = kEverybody}; }

std::string problem_with_name(std::string_view what, std::string_view name) {
  if (auto problem = problem_with_text(what, name, kMostName); !problem.empty()) return problem;
  if (name.starts_with('$')) return fmt::format("{}: must not begin with $", what);
  return {};
}

std::string problem_with_category(std::string_view category) {
  if (category == kAll) return "category: * stands for all of them; take another name";
  return problem_with_text("category", category, kMostCategory);
}

store::Item message_key(const Box& box, std::string_view id) {
  return store::Row().set(kPartition, box.partition()).set(kSort, fmt::format("{}{}", kMessagePrefix, id));
}

store::Item stats_key(const Box& box, std::string_view category) {
  return store::Row()
      .set(kPartition, box.partition())
      .set(kSort, fmt::format("{}{}", kStatsPrefix, category));
}

std::string make_message_id(int64_t microseconds) { return make_message_id(microseconds, random_bits()); }

std::string make_message_id(int64_t microseconds, uint64_t bits) {
  const auto time = static_cast<uint64_t>(std::max<int64_t>(0, microseconds));
  return base36(time / 1000, kTimeDigits) + base36(time % 1000, kRestDigits) + base36(bits, kRandomDigits);
}

TimePoint time_of_id(std::string_view id) {
  int64_t milliseconds = 0;
  for (const char c : id.substr(0, kTimeDigits))
    milliseconds = milliseconds * static_cast<int64_t>(kDigits.size()) +
                   static_cast<int64_t>(std::min(kDigits.find(c), kDigits.size() - 1));
  return time_at(milliseconds);
}

bool is_message_id(std::string_view text) {
  return text.size() == kTimeDigits + kRestDigits + kRandomDigits &&
         std::ranges::all_of(text, [](char c) { return kDigits.contains(c); });
}

}  // namespace tabella::inbox

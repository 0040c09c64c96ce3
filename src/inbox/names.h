// Who and where: tenants, their inboxes and users, and the keys that are made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/requests.h"

namespace tabella::inbox {

inline constexpr const char* kPartition = "pk";
inline constexpr const char* kSort = "sk";

// An inbox of one tenant.
struct Place {
  std::string tenant;
  std::string inbox;

  auto operator<=>(const Place&) const = default;
};

// One user's part of it; or, for the user $public, what is there for everybody.
struct Box {
  Place place;
  std::string user;

  std::string partition() const;
  bool is_public() const;
  bool operator==(const Box&) const = default;
};
Box public_box(const Place& place);

// What is wrong with a tenant, an inbox, a user or a category; empty: nothing. "user: …"
std::string problem_with_name(std::string_view what, std::string_view name);
std::string problem_with_category(std::string_view category);

// Rows of a box.
store::Item message_key(const Box& box, std::string_view id);
store::Item stats_key(const Box& box, std::string_view category);
inline constexpr const char* kMessagePrefix = "m#";
inline constexpr const char* kStatsPrefix = "c#";
inline constexpr const char* kAll = "*";  // instead of a category: all of them

// Ids of messages sort by their time. 19 characters in base 36: 9 for milliseconds, 2 for the rest of the
// microseconds since 1970, and 8 random ones.
std::string make_message_id(int64_t microseconds);
std::string make_message_id(int64_t microseconds, uint64_t bits);
TimePoint time_of_id(std::string_view id);
bool is_message_id(std::string_view text);

}  // namespace tabella::inbox

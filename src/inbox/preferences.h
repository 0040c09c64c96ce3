// What users want to be told by which channel, by category.
//
// For the bell that is decided when a message arrives: what was sent while it was off stays away when it is
// on again, and the other way round. A user's own messages are stopped by a condition on the counters' row
// (model.h); a broadcast is one row for everybody, so each user has a history of when the bell was on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::inbox {

enum class Channel { bell, email, webhook };
inline constexpr std::pair<Channel, std::string_view> kChannels[] = {
    {Channel::bell, "bell"}, {Channel::email, "email"}, {Channel::webhook, "webhook"}};
std::string_view name_of(Channel channel);
std::optional<Channel> channel_named(std::string_view name);

// By category; "*" is for those that say nothing themselves.
using Wishes = std::map<std::string, std::map<Channel, bool>, std::less<>>;
// Nothing: they do not say.
std::optional<bool> wish_of(const Wishes& wishes, std::string_view category, Channel channel);

// Nothing takes a wish back.
using WishChanges = std::map<std::string, std::map<Channel, std::optional<bool>>, std::less<>>;
void apply_changes(const WishChanges& changes, Wishes& wishes);

// What a user has wanted of the bell, at each place in the order of the broadcasts.
struct BellHistory {
  struct Step {
    int64_t after = 0;  // holds for the broadcasts behind this place
    std::optional<bool> on;
  };
  std::map<std::string, std::vector<Step>, std::less<>> steps;  // by category; each from the first on

  bool allows(std::string_view category, int64_t arrived, bool otherwise) const;
  void note(const std::string& category, int64_t after, std::optional<bool> on);
  // Forgets steps that matter for no broadcast: `any_between(category, a, b)` says whether there is one of
  // that category ("*": of any) behind a, up to b. Of those that matter the last few hundred are kept.
  using AnyBetween = std::function<bool(const std::string& category, int64_t after, int64_t until)>;
  void prune(const AnyBetween& any_between);
};

}  // namespace tabella::inbox

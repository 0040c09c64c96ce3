#include "inbox/preferences.h"

#include <algorithm>

#include "inbox/names.h"

namespace tabella::inbox {

std::string_view name_of(Channel channel) {
  for (const auto& [one, name] : kChannels)
    if (one == channel) return name;
  return {};
}

std::optional<Channel> channel_named(std::string_view name) {
  for (const auto& [channel, its_name] : kChannels)
    if (its_name == name) return channel;
  return {};
}

std::optional<bool> wish_of(const Wishes& wishes, std::string_view category, Channel channel) {
  for (const auto name : {category, std::string_view(kAll)}) {
    const auto found = wishes.find(name);
    if (found == wishes.end()) continue;
    if (const auto wish = found->second.find(channel); wish != found->second.end()) return wish->second;
  }
  return {};
}

void apply_changes(const WishChanges& changes, Wishes& wishes) {
  for (const auto& [category, channels] : changes) {
    auto& own = wishes[category];
    for (const auto& [channel, on] : channels) {
      if (on)
        own[channel] = *on;
      else
        own.erase(channel);
    }
    if (own.empty()) wishes.erase(category);
  }
}

bool BellHistory::allows(std::string_view category, int64_t arrived, bool otherwise) const {
  for (const auto name : {category, std::string_view(kAll)}) {
    const auto found = steps.find(name);
    if (found == steps.end()) continue;
    const auto behind =
        std::ranges::partition_point(found->second, [&](const Step& step) { return step.after < arrived; });
    if (behind != found->second.begin() && std::prev(behind)->on) return *std::prev(behind)->on;
  }
  return otherwise;
}

void BellHistory::note(const std::string& category, int64_t after, std::optional<bool> on,
                       const std::function<bool(int64_t, int64_t)>& any_between) {
  auto& all = steps[category];
  if (all.empty() ? !on : all.back().on == on) {
    if (all.empty()) steps.erase(category);
    return;
  }
  all.push_back({.after = after, .on = on});
  std::vector<Step> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool last = i + 1 == all.size();
    if (last || any_between(all[i].after, all[i + 1].after)) kept.push_back(all[i]);
  }
  // What says nothing to begin with says as much where it is not there.
  if (kept.size() == 1 && !kept.front().on)
    steps.erase(category);
  else
    all = std::move(kept);
}

}  // namespace tabella::inbox

#include "inbox/preferences.h"

#include <algorithm>

#include "inbox/names.h"

namespace tabella::inbox {
namespace {

constexpr size_t kMostBellSteps = 200;

}  // namespace

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

void BellHistory::note(const std::string& category, int64_t after, std::optional<bool> on) {
  auto& all = steps[category];
  if (all.empty() ? on.has_value() : all.back().on != on) all.push_back({.after = after, .on = on});
}

void BellHistory::prune(const AnyBetween& any_between) {
  for (auto& [category, all] : steps) {
    std::vector<Step> kept;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool last = i + 1 == all.size();
      if (last || any_between(category, all[i].after, all[i + 1].after)) kept.push_back(all[i]);
    }
    if (kept.size() > kMostBellSteps) kept.erase(kept.begin(), kept.end() - kMostBellSteps);
    // What says nothing to begin with says as much where it is not there.
    while (!kept.empty() && !kept.front().on) kept.erase(kept.begin());
    all = std::move(kept);
  }
  std::erase_if(steps, [](const auto& one) { return one.second.empty(); });
}

}  // namespace tabella::inbox

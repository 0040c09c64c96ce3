// Messages of this process that wait for their turn, by destination: how many go to one at once, how fast,
// and not at all while it is down. No destination keeps another waiting.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "outbox/message.h"

namespace tabella::outbox {

struct LaneOptions {
  size_t concurrency = 16;                   // of one destination
  size_t waiting = 128;                      // of one destination, in memory
  std::map<std::string, double> rates = {};  // most per second, by destination; "*": all others
  // A destination that could not be reached so often in a row is left alone for a while that grows.
  int failures_until_down = 3;
  std::chrono::milliseconds first_down{30'000};
  std::chrono::milliseconds longest_down{600'000};
};

// On one thread.
template <class Work>
class Lanes {
 public:
  explicit Lanes(LaneOptions options) : options_(std::move(options)) {}

  // For one more, beside those that are on their way into it.
  bool has_room(const std::string& destination, size_t coming) const {
    const auto found = lanes_.find(destination);
    return (found == lanes_.end() ? 0 : found->second.waiting()) + coming < options_.waiting;
  }
  bool is_half_empty(const std::string& destination) const {
    const auto found = lanes_.find(destination);
    return found == lanes_.end() || found->second.waiting() <= options_.waiting / 2;
  }
  void add(const std::string& destination, Priority priority, Work work) {
    lanes_[destination].queues[static_cast<size_t>(priority)].push_back(std::move(work));
    pending_.insert(destination);
  }

  // All that may go now, each to be followed by ended(). When there will be more, if time decides that.
  struct Next {
    std::vector<std::pair<std::string, Work>> work;
    std::optional<Elapsed> at;
  };
  Next next(Elapsed now) {
    Next next;
    for (auto at = pending_.begin(); at != pending_.end();) {
      auto& lane = lanes_[*at];
      take_from(*at, lane, now, next);
      at = lane.waiting() == 0 ? pending_.erase(at) : std::next(at);
    }
    return next;
  }

  // `reached`: the destination answered at all; nothing: nobody asked it.
  void ended(const std::string& destination, std::optional<bool> reached, Elapsed now) {
    const auto found = lanes_.find(destination);
    if (found == lanes_.end()) return;
    auto& lane = found->second;
    --lane.active;
    if (reached) note(lane, *reached, now);
    if (lane.is_idle(now)) lanes_.erase(found);
    // Destinations that failed are remembered; not without end.
    if (lanes_.size() > kMostLanes)
      std::erase_if(lanes_,
                    [](const auto& entry) { return entry.second.active + entry.second.waiting() == 0; });
  }

  // How long the destination is left alone; nothing: it is not.
  std::optional<Elapsed> down_for(const std::string& destination, Elapsed now) const {
    const auto found = lanes_.find(destination);
    if (found == lanes_.end() || found->second.down_until <= now) return std::nullopt;
    return found->second.down_until - now;
  }
  // Takes out all that waits.
  std::vector<Work> clear() {
    std::vector<Work> all;
    for (auto& [destination, lane] : lanes_)
      while (lane.waiting() > 0) all.push_back(lane.take());
    pending_.clear();
    return all;
  }

 private:
  static constexpr size_t kMostLanes = 10'000;
  static constexpr Elapsed kBurst = std::chrono::milliseconds{50};  // what a lane that rested may catch up

  struct Lane {
    std::array<std::deque<Work>, 3> queues;  // by priority
    size_t active = 0;
    Elapsed free_at{};  // by its rate
    int failures = 0;   // in a row
    Elapsed down_until{};

    bool is_idle(Elapsed now) const {
      return active == 0 && waiting() == 0 && failures == 0 && free_at <= now;
    }
    size_t waiting() const { return queues[0].size() + queues[1].size() + queues[2].size(); }
    Work take() {
      for (auto& queue : queues)
        if (!queue.empty()) {
          auto work = std::move(queue.front());
          queue.pop_front();
          return work;
        }
      return {};
    }
  };

  void take_from(const std::string& destination, Lane& lane, Elapsed now, Next& next) {
    while (lane.waiting() > 0 && lane.active < options_.concurrency) {
      if (lane.free_at > now) {
        if (!next.at || lane.free_at < *next.at) next.at = lane.free_at;
        return;
      }
      next.work.emplace_back(destination, lane.take());
      ++lane.active;
      if (const auto rate = rate_of(destination); rate > 0)
        lane.free_at = std::max(lane.free_at, now - kBurst) + Elapsed(static_cast<int64_t>(1e9 / rate));
    }
  }

  double rate_of(const std::string& destination) const {
    auto found = options_.rates.find(destination);
    if (found == options_.rates.end()) found = options_.rates.find("*");
    return found == options_.rates.end() ? 0 : found->second;
  }

  void note(Lane& lane, bool reached, Elapsed now) {
    if (reached) {
      lane.failures = 0;
      return;
    }
    if (++lane.failures < options_.failures_until_down) return;
    const int doublings = std::min(lane.failures - options_.failures_until_down, 10);
    lane.down_until = now + std::min<Elapsed>(options_.longest_down, options_.first_down * (1 << doublings));
  }

  const LaneOptions options_;
  std::map<std::string, Lane> lanes_;
  std::set<std::string> pending_;  // those in which something waits
};

}  // namespace tabella::outbox

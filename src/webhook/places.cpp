#include "webhook/places.h"

#include <algorithm>

#include "base/ids.h"

namespace tabella::webhook {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kShortestPause{500};
constexpr milliseconds kLongestPause{30'000};
constexpr milliseconds kPauseForEach{5};  // that waits

}  // namespace

store::Async<std::shared_ptr<void>> Places::take(const schedule::Firing& firing, std::string receiver) {
  auto place = take(receiver);
  if (!place) TABELLA_CO_TRY(co_await schedule_.put_off(firing, clock_.now() + pause(receiver)));
  co_return place;
}

std::shared_ptr<void> Places::take(const std::string& receiver) {
  const std::lock_guard lock(mutex_);
  auto& [under_way, waiting] = receivers_[receiver];
  if (under_way >= most_) {
    ++waiting;
    return nullptr;
  }
  ++under_way;
  waiting = std::max(0, waiting - 1);
  return {this, [receiver](Places* places) { places->give_back(receiver); }};
}

milliseconds Places::pause(const std::string& receiver) const {
  int waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = receivers_.find(receiver); found != receivers_.end())
      waiting = found->second.waiting;
  }
  const auto longest = std::clamp(waiting * kPauseForEach, kShortestPause, kLongestPause);
  return kShortestPause + milliseconds(random_bits() % static_cast<uint64_t>(longest.count()));
}

void Places::give_back(const std::string& receiver) {
  const std::lock_guard lock(mutex_);
  const auto found = receivers_.find(receiver);
  if (--found->second.under_way == 0) receivers_.erase(found);
}

}  // namespace tabella::webhook

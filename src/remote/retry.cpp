#include "remote/retry.h"

#include <algorithm>

#include "base/ids.h"

namespace tabella::remote {

bool Retry::draw(int cost) {
  int left = quota_.load();
  while (left >= cost)
    if (quota_.compare_exchange_weak(left, left - cost)) return true;
  return false;
}

void Retry::succeeded(int drawn) {
  const int back = drawn > 0 ? drawn : 1;
  int left = quota_.load();
  while (left < options_.quota)
    if (quota_.compare_exchange_weak(left, std::min(left + back, options_.quota))) return;
}

std::chrono::microseconds Retry::pause_before(int attempt) const {
  const auto doubled = options_.first_pause * (int64_t{1} << std::clamp(attempt - 2, 0, 20));
  const std::chrono::microseconds bound = std::min(doubled, options_.longest_pause);
  return std::chrono::microseconds(random_bits() % static_cast<uint64_t>(bound.count() + 1));
}

}  // namespace tabella::remote

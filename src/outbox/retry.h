// When a delivery that failed for now is tried again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tabella::outbox {

struct RetryOptions {
  std::chrono::milliseconds first{60'000};
  std::chrono::milliseconds longest{4 * 3'600'000};
};

// After so many attempts: twice as long each time, up to the longest, and up to a quarter more or less, so
// that those that failed together do not come together again. `random` is any 64 bits.
inline std::chrono::milliseconds backoff(const RetryOptions& options, int attempts, uint64_t random) {
  const int doublings = std::clamp(attempts - 1, 0, 40);
  const auto whole =
      std::min(static_cast<double>(options.longest.count()),
               static_cast<double>(options.first.count()) * static_cast<double>(1LL << doublings));
  const auto jitter = 0.75 + 0.5 * (static_cast<double>(random >> 11) / static_cast<double>(1ULL << 53));
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(whole * jitter)));
}

}  // namespace tabella::outbox

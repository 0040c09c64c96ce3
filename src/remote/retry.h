// When a call that failed is made again, as AWS's SDKs do it: after a pause drawn at random under a bound
// that doubles, and only as long as calls in general succeed. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

namespace tabella::remote {

struct RetryOptions {
  int attempts = 10;  // of one call
  std::chrono::milliseconds first_pause{25};
  std::chrono::milliseconds longest_pause{5'000};
  // Retries draw from a quota that successes fill up again: an endpoint that is down is not asked ten times
  // as often as one that is up.
  int quota = 500;
  int cost = 5;
  int cost_of_timeout = 10;
};

class Retry {
 public:
  explicit Retry(RetryOptions options) : options_(options), quota_(options.quota) {}

  int attempts() const { return options_.attempts; }

  // False if too many have failed lately. What was drawn is given back when the call succeeds after all.
  bool draw(int cost);
  int cost(bool timed_out) const { return timed_out ? options_.cost_of_timeout : options_.cost; }
  // A call has succeeded; `drawn` is what its last retry cost, 0 if it needed none.
  void succeeded(int drawn);

  // Before attempt number `attempt` (2, 3, …).
  std::chrono::microseconds pause_before(int attempt) const;

 private:
  const RetryOptions options_;
  std::atomic<int> quota_;
};

}  // namespace tabella::remote

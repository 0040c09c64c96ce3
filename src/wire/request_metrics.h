// How many requests there were, how they ended and how long they took.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "wire/error.h"
#include "wire/operations.h"

namespace tabella::wire {

// Thread-safe.
class RequestMetrics {
 public:
  RequestMetrics();

  // `operation` is null where there was none of that name.
  void add(const NamedOperation* operation, const Result<>& result, std::chrono::nanoseconds took);

  void write(metrics::Exposition& out) const;

 private:
  struct Operation {
    metrics::Counter succeeded = 0;
    metrics::Histogram latency{metrics::latency_bounds()};
  };

  std::vector<Operation> operations_;  // as in all_operations(), and one for all others
  mutable std::mutex mutex_;
  std::map<std::pair<size_t, std::string>, uint64_t> failed_;  // guarded by mutex_; by operation and error
};

}  // namespace tabella::wire

#include "wire/request_metrics.h"

#include "protocol/error_names.h"

namespace tabella::wire {
namespace {

std::string_view name_of(size_t operation) {
  return operation < all_operations().size() ? all_operations()[operation].name : "unknown";
}

}  // namespace

RequestMetrics::RequestMetrics() : operations_(all_operations().size() + 1) {}

void RequestMetrics::add(const NamedOperation* operation, const Result<>& result,
                         std::chrono::nanoseconds took) {
  const auto at =
      operation ? static_cast<size_t>(operation - all_operations().data()) : all_operations().size();
  operations_[at].latency.observe(took);
  if (result) {
    operations_[at].succeeded.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard lock(mutex_);
  ++failed_[{at, std::string(protocol::short_name(result.error().type))}];
}

void RequestMetrics::write(metrics::Exposition& out) const {
  constexpr const char* kRequests = "tabella_requests_total";
  constexpr const char* kRequestsHelp = "Requests by operation and result: ok, or the name of the error";
  for (size_t i = 0; i < operations_.size(); ++i) {
    const auto& operation = operations_[i];
    out.counter(kRequests, kRequestsHelp, static_cast<double>(operation.succeeded.load()),
                {{"operation", name_of(i)}, {"result", "ok"}});
    out.histogram("tabella_request_seconds", "Time from a request's arrival to its answer", operation.latency,
                  {{"operation", name_of(i)}});
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : failed_)
    out.counter(kRequests, kRequestsHelp, static_cast<double>(count),
                {{"operation", name_of(key.first)}, {"result", key.second}});
}

}  // namespace tabella::wire

#include <algorithm>

#include <fmt/format.h>

#include "engine/engine.h"
#include "engine/keys.h"
#include "engine/read_page.h"

namespace tabella::engine {

using store::refuse;
using store::Result;
using store::ScanRequest;

namespace {

constexpr const char* kBadStart = "The provided starting key is invalid";

Result<> check_segments(const ScanRequest& request) {
  if (request.segment && !request.total_segments)
    return refuse(
        "The TotalSegments parameter is required but was not present in the request when Segment parameter "
        "is present");
  if (!request.total_segments) return {};
  if (!request.segment)
    return refuse(
        "The Segment parameter is required but was not present in the request when parameter TotalSegments "
        "is present");
  if (*request.segment >= *request.total_segments)
    return refuse(fmt::format(
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: {} is "
        "not less than TotalSegments: {}",
        *request.segment, *request.total_segments));
  return {};
}

// Segment i of n begins at the i-th n-th of the space of hashes.
uint64_t first_hash(int64_t segment, int64_t segments) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(segment) << 64) /
                               static_cast<uint64_t>(segments));
}

}  // namespace

Result<store::Page> Engine::scan_now(const ScanRequest& request) {
  const auto& options = request.options;
  TABELLA_TRY(check_read_parameters(options, Reading::scan, nullptr));
  TABELLA_TRY(check_segments(request));
  TABELLA_ASSIGN(auto expressions, prepare_read_expressions(options, Reading::scan, nullptr, caches_));
  TABELLA_TRY(check_select(options, Reading::scan));
  TABELLA_ASSIGN(auto plan, plan_read(options, expressions, catalogue_));
  if (options.start_key) TABELLA_TRY(check_start_key(plan, *options.start_key, Reading::scan));
  TABELLA_TRY(check_projected(options, plan));
  std::vector<expression::Path> paths;
  if (plan.projection) paths = *plan.projection;
  if (plan.filter) collect_paths(*plan.filter, paths);
  TABELLA_TRY(check_key_paths(*plan.table, paths));

  const auto prefix = plan.index ? keys::entries_of(plan.index->id) : keys::items_of(plan.table->id);
  std::string from = prefix;
  std::string to = keys::end_of(prefix);
  if (request.total_segments) {
    from = keys::at_hash(prefix, first_hash(*request.segment, *request.total_segments));
    if (*request.segment + 1 < *request.total_segments)
      to = keys::at_hash(prefix, first_hash(*request.segment + 1, *request.total_segments));
  }
  if (options.start_key) {
    auto start = start_position(plan, *options.start_key);
    if (start < from || start >= to)
      return refuse(
          fmt::format("{}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
                      "TotalSegments: {} Segment: {}",
                      kBadStart, request.total_segments.value_or(1), request.segment.value_or(0)));
    from = std::move(start) + '\0';
  }
  return read_page(database_, plan, options,
                   database_.range(std::move(from), std::move(to), Database::Direction::forward, false));
}

store::Async<store::Page> Engine::scan(ScanRequest request) {
  if (!takes_long(request.options)) co_return scan_now(request);
  co_return co_await long_work_.run([&] { return scan_now(request); });
}

}  // namespace tabella::engine

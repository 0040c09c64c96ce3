#include "wire/operations.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Wire<store::ScanRequest> read(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::ScanRequest request;
  request.options = read_read_options(reader, "ScanFilter");
  reader.at_least("Limit", request.options.limit, 1);
  request.total_segments = reader.integer("TotalSegments");
  reader.at_least("TotalSegments", request.total_segments, 1);
  reader.at_most("TotalSegments", request.total_segments, 1'000'000);
  request.segment = reader.integer("Segment");
  reader.at_least("Segment", request.segment, 0);
  reader.at_most("Segment", request.segment, 999'999);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(scan) {
  auto request = read(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.scan(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  append_page(out, *result);
  co_return Wire<>{};
}

}  // namespace tabella::wire

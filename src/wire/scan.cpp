#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::ScanRequest> read_scan(JsonValue body) {
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

TABELLA_OPERATION(scan) { return answer(read_scan(body), context, &store::Store::scan, out, append_page); }

}  // namespace tabella::wire

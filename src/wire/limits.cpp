// DescribeLimits and DescribeEndpoints: what AWS answers for a new account, and where we are.
#include "wire/operations.h"

namespace tabella::wire {

TABELLA_OPERATION(describe_limits) {
  static_cast<void>(context);
  static_cast<void>(body);
  JsonObjectWriter json(out);
  json.number("AccountMaxReadCapacityUnits", int64_t{80000});
  json.number("AccountMaxWriteCapacityUnits", int64_t{80000});
  json.number("TableMaxReadCapacityUnits", int64_t{40000});
  json.number("TableMaxWriteCapacityUnits", int64_t{40000});
  co_return Result<>{};
}

TABELLA_OPERATION(describe_endpoints) {
  static_cast<void>(body);
  JsonObjectWriter json(out);
  JsonArrayWriter endpoints(json.key("Endpoints"));
  JsonObjectWriter endpoint(endpoints.element());
  endpoint.string("Address", context.host);
  endpoint.number("CachePeriodInMinutes", int64_t{1440});
  co_return Result<>{};
}

}  // namespace tabella::wire

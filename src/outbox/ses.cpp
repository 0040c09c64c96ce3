#include "outbox/ses.h"

#include <charconv>

#include <fmt/format.h>

namespace tabella::outbox {

void SesApi::add_routes(Routes routes) {
  add_send_routes(routes);
  add_template_routes(routes);
  add_suppression_routes(routes);
  add_account_routes(routes);
}

SesResult<size_t> SesApi::page_size(const Call& call, size_t most) {
  if (!call.target.has("PageSize")) return most;
  const auto given = call.target.get("PageSize");
  size_t size = 0;
  const auto* end = given.data() + given.size();
  const auto [read, error] = std::from_chars(given.data(), end, size);
  if (error == std::errc{} && read == end && size >= 1 && size <= most) return size;
  return invalid(fmt::format("PageSize must be a whole number from 1 to {}.", most));
}

}  // namespace tabella::outbox

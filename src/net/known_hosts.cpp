#include "net/known_hosts.h"

#include <algorithm>

namespace tabella::net {

bool KnownHosts::knows(std::string_view host) const {
  if (!names_ || host.starts_with('[')) return true;
  const auto name = host.substr(0, host.rfind(':'));
  const bool address = name.find_first_not_of("0123456789.") == std::string_view::npos;
  return address || name.find('.') == std::string_view::npos || name.ends_with(".localhost") ||
         std::ranges::any_of(*names_, [&](const auto& known) { return same_header(known, name); });
}

bool may_call(const HttpRequest& request, std::string_view allowed_origin) {
  const auto origin = request.header("origin");
  if (origin.empty() || allowed_origin == "*" || same_header(origin, allowed_origin)) return true;
  const auto scheme = origin.find("://");
  return scheme != std::string_view::npos && same_header(origin.substr(scheme + 3), request.header("host"));
}

}  // namespace tabella::net

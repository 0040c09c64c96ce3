#include "net/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::net {

std::string Url::authority() const {
  const auto name = host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
  return port == (tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::expected<Url, std::string> parse_url(std::string_view text) {
  // What comes before an '@' is a password: it is not repeated.
  const auto wrong = [&] {
    const auto shown = text.find('@') == std::string_view::npos ? text : std::string_view("…@…");
    return std::unexpected(fmt::format("'{}' is not a URL like http://localhost:8000", shown));
  };
  Url url;
  auto rest = text;
  if (rest.starts_with("https://"))
    url.tls = true;
  else if (!rest.starts_with("http://"))
    return wrong();
  url.port = url.tls ? 443 : 80;
  rest.remove_prefix(url.tls ? 8 : 7);
  const auto slash = std::min(rest.find_first_of("/?"), rest.size());
  if (slash < rest.size())
    url.path = rest[slash] == '/' ? rest.substr(slash) : fmt::format("/{}", rest.substr(slash));
  auto authority = rest.substr(0, slash);
  const auto bracket = authority.rfind(']');
  const auto colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const auto digits = authority.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (error != std::errc{} || end != digits.data() + digits.size() || url.port == 0) return wrong();
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']'))
    authority = authority.substr(1, authority.size() - 2);
  const bool fits = !authority.empty() && is_plain(authority) && is_plain(url.path) &&
                    authority.find_first_of("@[]\"<>\\") == std::string_view::npos;
  if (!fits) return wrong();
  url.host = authority;
  return url;
}

}  // namespace tabella::net

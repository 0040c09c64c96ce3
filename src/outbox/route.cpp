#include "outbox/route.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "net/target.h"
#include "net/url.h"

namespace tabella::outbox {
namespace {

std::unexpected<std::string> no_relay(std::string_view why) {
  return std::unexpected(fmt::format("{}; a relay is smtp://user:password@host:port or smtps://host", why));
}

std::expected<void, std::string> read_parameters(std::string_view query, smtp::Destination& relay) {
  if (query.empty()) return {};
  for (const auto part : split(query, '&')) {
    if (part.starts_with("tls=") && relay.security == smtp::Security::implicit)
      return no_relay("smtps:// begins with TLS, and tls= is for smtp://");
    if (part == "tls=required")
      relay.security = smtp::Security::required;
    else if (part == "tls=opportunistic")
      relay.security = smtp::Security::opportunistic;
    else if (part == "tls=off")
      relay.security = smtp::Security::none;
    else if (part == "verify=no")
      relay.check_certificate = false;
    else if (part != "verify=yes")
      return no_relay("behind the ? can be tls=required, tls=opportunistic, tls=off and verify=no");
  }
  return {};
}

}  // namespace

std::expected<smtp::Destination, std::string> parse_relay(std::string_view url) {
  smtp::Destination relay;
  if (url.starts_with("smtps://")) {
    relay.port = 465;
    relay.security = smtp::Security::implicit;
    url.remove_prefix(8);
  } else if (url.starts_with("smtp://")) {
    url.remove_prefix(7);
  } else {
    return no_relay("it begins with neither smtp:// nor smtps://");
  }
  const auto question = url.find('?');
  const auto query = question == std::string_view::npos ? std::string_view() : url.substr(question + 1);
  auto authority = url.substr(0, question);
  if (authority.ends_with('/')) authority.remove_suffix(1);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const auto login = authority.substr(0, at);
    const auto colon = login.find(':');
    const auto user = net::percent_decode(login.substr(0, colon), false);
    const auto password = colon == std::string_view::npos
                              ? std::optional<std::string>("")
                              : net::percent_decode(login.substr(colon + 1), false);
    if (!user || !password) return no_relay("the user or the password has a % that stands for nothing");
    relay.user = *user;
    relay.password = *password;
    if (!user->empty() && relay.security != smtp::Security::implicit)
      relay.security = smtp::Security::required;
    authority.remove_prefix(at + 1);
  }
  if (!net::read_authority(authority, relay.host, relay.port))
    return no_relay("its host or port cannot be read");
  if (const auto read = read_parameters(query, relay); !read) return std::unexpected(read.error());
  return relay;
}

std::expected<void, std::string> Routes::add(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return std::unexpected("a route is DOMAIN=capture, DOMAIN=direct or DOMAIN=smtp://host:port");
  auto domain = lower(trim(text.substr(0, equals)));
  if (domain == "*") return std::unexpected("a route is for a domain; --outbox-mode is for all others");
  const auto to = trim(text.substr(equals + 1));
  Route route;
  if (to == "capture") {
    route.mode = Mode::capture;
  } else if (to == "direct") {
    route.mode = Mode::direct;
  } else {
    auto relay = parse_relay(to);
    if (!relay) return std::unexpected(relay.error());
    route = {.mode = Mode::relay, .relay = std::move(*relay)};
  }
  if (domain.starts_with("*.")) domain.erase(0, 1);
  by_domain_[domain] = std::move(route);
  return {};
}

const Route& Routes::find(const std::string& domain) const {
  if (by_domain_.empty()) return otherwise;
  if (const auto found = by_domain_.find(domain); found != by_domain_.end()) return found->second;
  for (auto dot = domain.find('.'); dot != std::string::npos; dot = domain.find('.', dot + 1))
    if (const auto found = by_domain_.find(domain.substr(dot)); found != by_domain_.end())
      return found->second;
  return otherwise;
}

bool Routes::any(Mode mode) const {
  return otherwise.mode == mode ||
         std::ranges::any_of(by_domain_, [&](const auto& entry) { return entry.second.mode == mode; });
}

}  // namespace tabella::outbox

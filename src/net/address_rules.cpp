#include "net/address_rules.h"

#include <arpa/inet.h>
#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "net/url.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::ip::address;
using asio::ip::address_v4;
using asio::ip::address_v6;

namespace {

struct Special {
  const char* network;
  const char* kind;
};

// IANA's registry of special-purpose addresses.
constexpr Special kSpecial[] = {
    {"0.0.0.0/8", "an unspecified address"},
    {"10.0.0.0/8", "a private address"},
    {"100.64.0.0/10", "a shared address"},
    {"169.254.0.0/16", "a link-local address"},
    {"172.16.0.0/12", "a private address"},
    {"192.0.0.0/24", "a reserved address"},
    {"192.0.2.0/24", "an address for documentation"},
    {"192.88.99.0/24", "a reserved address"},
    {"192.168.0.0/16", "a private address"},
    {"198.18.0.0/15", "an address for benchmarks"},
    {"198.51.100.0/24", "an address for documentation"},
    {"203.0.113.0/24", "an address for documentation"},
    {"224.0.0.0/4", "a multicast address"},
    {"255.255.255.255", "the broadcast address"},
    {"240.0.0.0/4", "a reserved address"},
    {"::/128", "an unspecified address"},
    {"fc00::/7", "a private address"},
    {"fe80::/10", "a link-local address"},
    {"ff00::/8", "a multicast address"},
    {"2001:db8::/32", "an address for documentation"},
    {"3fff::/20", "an address for documentation"},
    // Teredo, ORCHID and other experiments.
    {"2001::/23", "a reserved address"},
};

const std::vector<std::pair<Network, const char*>>& special_networks() {
  static const auto networks = [] {
    std::vector<std::pair<Network, const char*>> all;
    for (const auto& special : kSpecial) all.emplace_back(*parse_network(special.network), special.kind);
    return all;
  }();
  return networks;
}

std::span<const unsigned char> bytes_of(const address& of, address_v4::bytes_type& four,
                                        address_v6::bytes_type& sixteen) {
  if (of.is_v4()) return four = of.to_v4().to_bytes();
  return sixteen = of.to_v6().to_bytes();
}

// The IPv4 address that packets to this one end at, where it stands for one: mapped, behind a translator
// (NAT64) or a 6to4 relay.
std::optional<address> embedded(const address_v6& outer) {
  struct Form {
    const char* network;
    size_t at;
  };
  constexpr Form kForms[] = {{"::ffff:0:0/96", 12}, {"64:ff9b::/96", 12}, {"2002::/16", 2}};
  const auto bytes = outer.to_bytes();
  for (const auto& form : kForms) {
    if (!parse_network(form.network)->has(outer)) continue;
    address_v4::bytes_type inner;
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(form.at), inner.size(), inner.begin());
    return address_v4(inner);
  }
  return std::nullopt;
}

// What kind of address that nobody should reach through us; null: one of the public Internet.
const char* kind_of(const address& of) {
  for (const auto& [network, kind] : special_networks())
    if (network.has(of)) return kind;
  static const auto global = *parse_network("2000::/3");
  return of.is_v6() && !global.has(of) ? "a reserved address" : nullptr;
}

// As names are compared: without the dot of the root.
std::string folded(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  return lower(host);
}

// A host or .domain. What ends in a number was meant to be an address.
bool is_name(std::string_view folded) {
  if (!is_host_name(folded.substr(folded.starts_with('.') ? 1 : 0))) return false;
  const auto first = folded[folded.rfind('.') + 1];
  return first < '0' || first > '9';
}

std::optional<address> plain_address(std::string_view text) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(text, error);
  return error || !is_plain(text) ? std::nullopt : std::optional(parsed);
}

}  // namespace

bool Network::has(const asio::ip::address& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  address_v4::bytes_type four_a;
  address_v4::bytes_type four_b;
  address_v6::bytes_type sixteen_a;
  address_v6::bytes_type sixteen_b;
  const auto mine = bytes_of(address, four_a, sixteen_a);
  const auto theirs = bytes_of(other, four_b, sixteen_b);
  const auto whole = bits / 8;
  if (!std::ranges::equal(mine.first(whole), theirs.first(whole))) return false;
  return bits % 8 == 0 || (mine[whole] ^ theirs[whole]) >> (8 - bits % 8) == 0;
}

std::optional<Network> parse_network(std::string_view text) {
  const auto slash = std::min(text.find('/'), text.size());
  const auto parsed = plain_address(text.substr(0, slash));
  if (!parsed) return std::nullopt;
  Network network{.address = *parsed, .bits = parsed->is_v4() ? 32u : 128u};
  if (slash == text.size()) return network;
  const auto digits = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc{} || end != digits.data() + digits.size() || bits > network.bits)
    return std::nullopt;
  network.bits = bits;
  return network;
}

std::optional<address> literal_address(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (auto parsed = plain_address(host)) {
    if (!parsed->is_v6() || !parsed->to_v6().is_v4_mapped()) return parsed;
    return asio::ip::make_address_v4(asio::ip::v4_mapped, parsed->to_v6());
  }
  // The numbers of old: one to four of them, in any of three bases.
  in_addr old;
  if (!is_plain(host) || ::inet_aton(std::string(host).c_str(), &old) == 0) return std::nullopt;
  return address_v4(ntohl(old.s_addr));
}

std::expected<AddressRules, std::string> AddressRules::make(Options options) {
  AddressRules rules;
  rules.loopback_ = options.loopback;
  for (const auto& text : options.allowed) {
    if (const auto network = parse_network(text))
      rules.networks_.push_back(*network);
    else if (is_name(folded(text)))
      rules.names_.push_back(folded(text));
    else
      return std::unexpected(
          fmt::format("'{}' is neither a host name, nor an address, nor a network like 10.0.0.0/8", text));
  }
  return rules;
}

bool AddressRules::allows_name(std::string_view host) const {
  const auto name = folded(host);
  return std::ranges::any_of(names_, [&](const std::string& allowed) {
    return allowed.starts_with('.') ? name.ends_with(allowed) : name == allowed;
  });
}

std::expected<void, std::string> AddressRules::check(std::string_view host, const address& found) const {
  const auto allows = [&](const address& one) {
    return std::ranges::any_of(networks_, [&](const Network& network) { return network.has(one); });
  };
  auto where = found;
  if (const auto inner = found.is_v6() ? embedded(found.to_v6()) : std::nullopt) where = *inner;
  const auto* kind = where.is_loopback() ? (loopback_ ? nullptr : "a loopback address") : kind_of(where);
  if (!kind || allows(found) || allows(where) || allows_name(host)) return {};
  return std::unexpected(
      fmt::format("{} is {}{}, which may not be reached from here; --outbound-allow {} allows it", host,
                  literal_address(host) ? "" : "at ", kind, host));
}

std::expected<AddressRules::Endpoints, std::string> AddressRules::permitted(std::string_view host,
                                                                            Endpoints found) const {
  std::string why;
  std::erase_if(found, [&](const auto& endpoint) {
    const auto checked = check(host, endpoint.address());
    if (!checked) why = checked.error();
    return !checked;
  });
  if (found.empty() && !why.empty()) return std::unexpected(std::move(why));
  return found;
}

}  // namespace tabella::net

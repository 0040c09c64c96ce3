// Which addresses may be reached on behalf of others: the hooks, callbacks and servers that users name must
// not become a way into the network that we stand in.
//
// What is not part of the public Internet is refused unless it is allowed: link-local addresses (there are
// the metadata services of clouds), private, shared, reserved and multicast ones, also where they hide in an
// IPv6 address (::ffff:10.0.0.1, 64:ff9b::a00:1, 2002:a00:1::). The question is asked of addresses and not of
// names, after a lookup and before connecting, so that no name gets around it by changing its mind (DNS
// rebinding).
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tabella::net {

// An address, or all that begin with the same bits.
struct Network {
  boost::asio::ip::address address;
  unsigned bits = 0;

  bool has(const boost::asio::ip::address& other) const;
};

// 10.0.0.0/8, fc00::/7, or an address alone; nothing for anything else.
std::optional<Network> parse_network(std::string_view text);

// The address that a host is by itself, without a lookup, in all the spellings that resolvers take:
// 127.0.0.1, 2130706433, 0x7f.1, 0177.0.0.1, ::ffff:127.0.0.1, ::1, all also with a dot behind them. Nothing
// if it is a name.
std::optional<boost::asio::ip::address> literal_address(std::string_view host);

// Immutable, so thread-safe.
class AddressRules {
 public:
  struct Options {
    // Hosts ("hooks.example.com"), all hosts under a domain (".example.com"), addresses, or networks as in
    // 10.0.0.0/8. A host that is allowed by its name may be anywhere.
    std::vector<std::string> allowed;
    bool loopback = true;  // in development
  };
  // A sentence if something in `allowed` cannot be read.
  static std::expected<AddressRules, std::string> make(Options options);

  // A sentence if `host`, which was found at `address`, may not be reached. It does not say the address:
  // names of the inside are none of the asker's business.
  std::expected<void, std::string> check(std::string_view host,
                                         const boost::asio::ip::address& address) const;

  // Those that may be reached of where `host` was found; a sentence if none may be.
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  std::expected<Endpoints, std::string> permitted(std::string_view host, Endpoints found) const;

 private:
  bool allows_name(std::string_view host) const;

  std::vector<std::string> names_;  // in lower case
  std::vector<Network> networks_;
  bool loopback_ = true;
};

}  // namespace tabella::net

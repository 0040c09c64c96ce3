// Requests that others make us send: webhooks, callbacks, attachments by address. One client for all of them,
// which refuses to reach what a stranger should not reach through us.
//
// Every address is checked after it was looked up and before it is connected to, so that neither a name that
// changes its mind (DNS rebinding) nor a redirect gets around it.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>

#include "net/client.h"
#include "net/url.h"

namespace tabella::net {

// Which addresses may be reached. Link-local (169.254.0.0/16, fe80::/10: there are the metadata services of
// clouds), private, shared, reserved and multicast ones may not, unless they are allowed.
class AddressRules {
 public:
  struct Options {
    std::vector<std::string> allowed;  // host names, addresses, or networks as in 10.0.0.0/8
    bool loopback = true;              // in development
  };
  // A sentence if something in `allowed` cannot be read.
  static std::expected<AddressRules, std::string> make(Options options);

  // A sentence if `host`, which was found at `address`, may not be reached.
  std::expected<void, std::string> check(std::string_view host,
                                         const boost::asio::ip::address& address) const;

 private:
  struct Network {
    boost::asio::ip::address address;
    unsigned bits = 0;
  };
  std::vector<std::string> names_;
  std::vector<Network> networks_;
  bool loopback_ = true;
};

struct OutboundRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::chrono::milliseconds timeout{15'000};
  size_t max_body = 1u << 20;
  int redirects = 0;     // how many are followed
  bool trusted = false;  // the address was given by whoever runs the process: no rules
};

struct OutboundReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct OutboundError {
  bool refused = false;  // by our own rules: there is no use in trying again
  std::string message;
};

// Thread-safe.
class Outbound {
 public:
  struct Options {
    AddressRules::Options rules;
    std::string proxy;  // http://HOST:PORT; empty: none
    std::string ca_file;
  };
  // Throws std::runtime_error with a sentence for the user.
  explicit Outbound(Options options);
  ~Outbound();

  const AddressRules& rules() const;
  boost::asio::awaitable<std::expected<OutboundReply, OutboundError>> send(OutboundRequest request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::net

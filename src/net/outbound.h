// Requests that others make us send: webhooks, callbacks, attachments by address. One client for all of them,
// which refuses to reach what a stranger should not reach through us.
//
// Every address is checked when it was looked up and before it is connected to (net/address_rules.h), anew
// for every redirect. Through a proxy, which is trusted, only addresses that are written as such are checked:
// names are looked up by the proxy, and it is for the proxy to refuse what they lead to. What is on this
// machine (localhost, 127.0.0.1) is never asked of the proxy.
//
// Errors and logs name hosts; they repeat neither paths nor queries, where secrets of hooks are.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/address_rules.h"
#include "net/url.h"

namespace tabella::net {

using OutboundHeaders = std::vector<std::pair<std::string, std::string>>;

struct OutboundRequest {
  std::string method = "GET";
  std::string url;
  OutboundHeaders headers = {};  // without those of the connection: Host, Content-Length, …
  std::string body = {};
  std::chrono::milliseconds timeout{15'000};  // for the whole, redirects included
  size_t max_body = 1u << 20;
  // How many are followed; with none of them left the answer is an error. 0: the redirect is the answer. To
  // another origin nothing goes along that proves who we are, and never from https to http.
  int redirects = 0;
  bool trusted = false;  // the address was given by whoever runs the process: no rules for its origin
};

struct OutboundReply {
  int status = 0;
  OutboundHeaders headers;
  std::string body;

  // The first header of that name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct OutboundError {
  bool refused = false;        // by our own rules: there is no use in trying again
  bool may_have_come = false;  // the server may have got the request, and done what it asks
  std::string message;
};

// Thread-safe. Must outlive what it is sending. Keeps connections to the servers used last.
class Outbound {
 public:
  struct Options {
    AddressRules::Options rules;
    std::string proxy;  // http://HOST:PORT or http://USER:PASSWORD@HOST:PORT; empty: none
    std::string ca_file;
  };
  // Throws std::runtime_error with a sentence for the user.
  explicit Outbound(Options options);
  ~Outbound();
  Outbound(const Outbound&) = delete;
  Outbound& operator=(const Outbound&) = delete;

  const AddressRules& rules() const;
  // What can be said of a URL before anything is sent there; `message` if it is none that may be reached.
  std::expected<Url, OutboundError> check(std::string_view url) const;
  boost::asio::awaitable<std::expected<OutboundReply, OutboundError>> send(OutboundRequest request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::net

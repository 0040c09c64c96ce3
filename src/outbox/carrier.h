// Carries one message to where its recipients are: into our own mail, to a relay, or to the servers of each
// domain. One attempt; whether there is another is the dispatcher's business.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "net/address_rules.h"
#include "net/dns.h"
#include "outbox/message.h"
#include "outbox/route.h"
#include "smtp/pool.h"
#include "smtp/session.h"
#include "store/store.h"

namespace tabella::outbox {

// Takes a message into our own mail; what it is called there. Thread-safe.
using Capture = std::function<store::Async<std::string>(smtp::Envelope envelope)>;

struct CarrierOptions {
  Routes routes;
  std::string hostname = "localhost";  // what we say at EHLO
  smtp::Security direct_security =
      smtp::Security::opportunistic;  // with `required`, certificates are checked
  uint16_t direct_port = 25;
  std::vector<std::string> dns_servers = {};  // empty: the system's
  std::string ca_file = {};                   // empty: the system's
  smtp::Timeouts timeouts = {};
};

// What became of one recipient in one attempt.
struct Carried {
  smtp::Outcome outcome;
  std::string host;  // who said so
};

// On one thread: that of the executor.
class Carrier {
 public:
  // `rules`: where the servers of domains may be. Throws std::runtime_error with a sentence for the user.
  Carrier(boost::asio::any_io_executor executor, CarrierOptions options, Capture capture,
          const net::AddressRules& rules);

  // What limits and failures are counted by: the relay's host, "capture", or the domain itself.
  std::string destination_of(const std::string& domain) const;

  // In the order of the addresses. `from` is the envelope's. The content must live until this is done.
  boost::asio::awaitable<std::vector<Carried>> carry(std::string from, std::vector<std::string> addresses,
                                                     std::shared_ptr<const std::string> content);
  boost::asio::awaitable<void> close() { return pool_.close(); }

 private:
  struct Group {
    const Route* route;
    std::string domain;           // direct
    std::vector<size_t> members;  // of the addresses
  };
  struct Job;

  std::vector<Group> group(const std::vector<std::string>& addresses) const;
  boost::asio::awaitable<void> carry_group(Job& job, const Group& group);
  boost::asio::awaitable<void> capture(Job& job, const Group& group);
  boost::asio::awaitable<bool> deliver(Job& job, const Group& group, smtp::Destination destination);
  boost::asio::awaitable<void> deliver_direct(Job& job, const Group& group);
  boost::asio::awaitable<std::expected<std::vector<std::string>, smtp::Outcome>> servers_of(
      std::string domain);
  boost::asio::awaitable<std::expected<smtp::Destination, smtp::Outcome>> locate(std::string host);

  const boost::asio::any_io_executor executor_;
  const CarrierOptions options_;
  const Capture capture_;
  const net::AddressRules& rules_;
  const smtp::Trust trust_;
  smtp::ConnectionPool pool_;
  net::Dns dns_;
};

}  // namespace tabella::outbox

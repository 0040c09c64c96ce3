// Bounces: what other servers report of an email long after they took it. Each email has a sender of its own
// (VERP), so that a report says by its address which email it is about; and with a MAC in it, so that nobody
// can make up such an address.
//
// Whoever has received an email knows its address, though: a report is believed only about recipients that
// the email has.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "mime/dsn.h"
#include "outbox/message.h"
#include "outbox/service.h"
#include "smtp/server.h"

namespace tabella::outbox {

// Plain data; any thread.
class BounceAddresses {
 public:
  // Another key makes all addresses before it unknown.
  BounceAddresses(std::string key, std::string domain);

  // bounce+<id>.<mac>@domain
  std::string address_of(std::string_view id) const;
  // The id of the email; nothing if the address is none of ours.
  std::optional<std::string> parse(std::string_view address) const;

 private:
  std::string mac_of(std::string_view id) const;

  const std::string key_;
  const std::string domain_;  // in lower case
};

// That an email has failed for one of its recipients.
struct Bounce {
  std::string email;
  std::string recipient;  // as the email has it
  std::string status;     // "5.1.1"; may be empty
  std::string diagnostic;
  bool permanent = false;  // the address is of no use any more: the status is 5.x
};

// What a report says of the recipients of an email, of each once. One with a single recipient is also
// reported under the address that its mail was forwarded to.
std::vector<Bounce> bounces_in(const std::vector<mime::DeliveryStatus>& report, const std::string& email,
                               const std::vector<Recipient>& recipients);

// Takes mail to these addresses only. Recipients that failed for good are put on the suppression list, and
// every failure is told. What is no report (an answer of somebody who is on holiday) is taken and forgotten.
//
// Thread-safe. Outlives the sessions.
class BounceHost {
 public:
  // May be told the same twice. Its errors make the other server try again.
  using Tell = std::function<store::Async<void>(Bounce)>;

  BounceHost(Outbox& outbox, BounceAddresses addresses, Tell tell)
      : outbox_(outbox), addresses_(std::move(addresses)), tell_(std::move(tell)) {}

  // For each connection.
  smtp::Server::Accepted invite();

  void write_metrics(metrics::Exposition& out) const;

 private:
  class Session;
  store::Async<void> take(const smtp::Envelope& envelope);
  store::Async<void> note(const std::vector<mime::DeliveryStatus>& report, const std::string& email);

  Outbox& outbox_;
  const BounceAddresses addresses_;
  const Tell tell_;
  metrics::Counter reports_{0};
  metrics::Counter others_{0};
  metrics::Counter suppressed_{0};
};

}  // namespace tabella::outbox

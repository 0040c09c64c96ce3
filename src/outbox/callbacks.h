// Tells whoever sent an email what became of it: a POST to its callback, or to the operator's, signed as
// webhooks are (webhook/signature.h), until it is taken.
//
//   {"code": "TRAVELING" or "DISPATCH-ERROR", "reached_at": "…", "message_ids": ["…"], "reason": "…"}
//
// A timer carries it: SENT becomes CALLING-SENT-CALLBACK with the first call and SENT-ACKNOWLEDGED with the
// first 2xx; FAILED likewise. Anything else is called again, after a pause that grows, for three days.
#pragma once

#include <string>

#include "base/metrics.h"
#include "net/outbound.h"
#include "outbox/service.h"
#include "schedule/schedule.h"
#include "webhook/call.h"

namespace tabella::outbox {

// Thread-safe. Must outlive the schedule's run().
class Callbacks {
 public:
  struct Options {
    std::string url = {};     // the operator's, for emails without one; empty: none
    std::string secret = {};  // what calls are signed with; empty: they are not
    std::chrono::milliseconds timeout{10'000};
    std::chrono::milliseconds give_up = std::chrono::days{3};
  };
  // Before the schedule runs.
  Callbacks(Outbox& outbox, schedule::Schedule& schedule, net::Outbound& outbound, Options options);

  // Before the email's work is cleared: a timer is set, and calls.
  store::Async<void> arm(const std::string& id);
  // Calls again, whatever came of it before. False if there is nothing to call.
  store::Async<bool> replay(const std::string& id);

  void write_metrics(metrics::Exposition& out) const;

 private:
  boost::asio::awaitable<void> fire(const schedule::Firing& firing);
  store::Async<void> call(const std::string& id, std::optional<TimePoint> asked);
  store::Async<Email> reached(Email email);
  boost::asio::awaitable<std::optional<webhook::Failure>> post(const Email& email,
                                                               const std::optional<Message>& message);
  std::string body_of(const Email& email, const std::optional<Message>& message) const;

  Outbox& outbox_;
  schedule::Schedule& schedule_;
  net::Outbound& outbound_;
  const Options options_;
  metrics::Counter acknowledged_{0};
  metrics::Counter refused_{0};
};

}  // namespace tabella::outbox

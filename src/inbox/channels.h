// What leaves the inbox: messages that go by email or to a webhook, besides the bell, to who wants that.
//
// A timer for each user and channel, set before the message is there (posts.h), sends it when its time has
// come, unless the user has read it or it was redacted by then. What fails is tried again.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "inbox/boxes.h"
#include "inbox/posts.h"
#include "inbox/settings.h"
#include "inbox/tenant_keys.h"
#include "net/outbound.h"
#include "schedule/schedule.h"
#include "webhook/places.h"

namespace tabella::inbox {

// Takes an email for good, as POST /outbox/emails takes it; one whose id it has had is taken once. An error
// of the kind validation will not pass.
using SendEmail = std::function<store::Async<void>(std::string json)>;

// Thread-safe. Must outlive the schedule's run().
class Channels {
 public:
  struct Parts {
    Settings& settings;
    Boxes& boxes;
    Posts& posts;
    TenantKeys& keys;
    schedule::Schedule& schedule;
    net::Outbound& outbound;
    const Clock& clock;
  };
  // Without `send_email` there is nobody who would.
  Channels(Parts parts, SendEmail send_email);

  bool can_send_email() const { return static_cast<bool>(send_email_); }
  void write_metrics(metrics::Exposition& out) const;

 private:
  // What is sent, and to whom.
  struct Sending {
    Place place;
    std::string user;  // empty: everybody
    Channel channel;
    const PostRow& post;
    const Settings::Rules& rules;
  };
  boost::asio::awaitable<void> fire(const schedule::Firing& firing);
  store::Async<bool> is_wanted(const Sending& sending);
  // Errors are tried again.
  store::Async<void> send(const Sending& sending, const schedule::Firing& firing);
  store::Async<void> email(const Sending& sending);
  store::Async<void> call_webhook(const Sending& sending, const schedule::Firing& firing);

  const Parts parts_;
  const SendEmail send_email_;
  webhook::Places places_;  // by tenant
  metrics::Counter sent_{0};
  metrics::Counter dropped_{0};
};

}  // namespace tabella::inbox

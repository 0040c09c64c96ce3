// What a domain's own program is told: a POST to its `events_url` when a search was opened and when it has
// ended, signed as the domain's webhooks are, and tried again until it is taken.
//
// A durable timer for each, set by whoever reads the stream: what was told may be told again, with the same
// id.
#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"
#include "manhunt/domains.h"
#include "manhunt/searches.h"
#include "net/outbound.h"
#include "schedule/schedule.h"
#include "webhook/places.h"

namespace tabella::manhunt {

// Thread-safe. Must outlive the schedule's run().
class Events {
 public:
  struct Parts {
    const Clock& clock;
    schedule::Schedule& schedule;
    net::Outbound& outbound;
    Domains& domains;
    Searches& searches;
  };
  explicit Events(Parts parts);

  // `event` is "opened", or the status with which the search has ended.
  store::Async<void> announce(const Search& search, std::string_view event);

  void write_metrics(metrics::Exposition& out) const;

 private:
  boost::asio::awaitable<void> fire(const schedule::Firing& firing);
  store::Async<void> tell(const schedule::Firing& firing);

  const Parts parts_;
  webhook::Places places_;  // by domain
  metrics::Counter told_{0};
  metrics::Counter failed_{0};
};

}  // namespace tabella::manhunt

// Heartbeats: something that says every so often that it is alive. Where it does not, somebody is searched
// for; when it does again, that is over.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "manhunt/domains.h"
#include "manhunt/searches.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::manhunt {

struct Heartbeat {
  std::string domain;
  std::string name;
  std::chrono::milliseconds every{0};
  std::string contact;  // or
  std::string policy;
  TimePoint last;     // when it was last heard of
  bool late = false;  // somebody is searched for
};

// Thread-safe. Must outlive the schedule's run().
class Heartbeats {
 public:
  struct Parts {
    store::Store& store;
    const Clock& clock;
    schedule::Schedule& schedule;
    Domains& domains;
    Searches& searches;
  };
  Heartbeats(Parts parts, std::string table);

  struct Page {
    std::vector<Heartbeat> heartbeats;  // by name
    std::string next;
  };

  // Counts from now. Where somebody is searched for by what it was before, that is over.
  store::Async<void> put(Heartbeat heartbeat);
  store::Async<Page> list(std::string domain, int64_t limit, std::string from);
  store::Async<std::optional<Heartbeat>> find(std::string domain, std::string name);
  // The name of one that searches for that contact, or by that policy; empty: none does.
  store::Async<std::string> first_that_asks(std::string domain, std::string contact, std::string policy);
  store::Async<bool> remove(std::string domain, std::string name);
  store::Async<bool> beat(std::string domain, std::string name);  // false: there is none

 private:
  boost::asio::awaitable<void> fire(const schedule::Firing& firing);
  store::Async<TimePoint> next_look(const Heartbeat& heartbeat);
  store::Async<void> check(const schedule::Firing& firing, const std::string& domain,
                           const std::string& name);
  store::Async<void> recover(const Heartbeat& heartbeat);
  store::Async<void> resolve(const Heartbeat& heartbeat);

  const Parts parts_;
  const std::string table_;
};

}  // namespace tabella::manhunt

// The webhooks of one system: tells other programs of its events by a POST for each, signed
// (webhook/signature.h), and tried again until it is taken.
//
// A timer for each hook is set before the event is kept, so that neither is there without the other for long;
// what there is to say is asked of the system when the timer fires. Hooks that the operator named are
// trusted; where those may be that users add is for net/outbound.h to say. Their secrets are kept sealed.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "net/outbound.h"
#include "schedule/schedule.h"
#include "store/settings.h"
#include "webhook/call.h"
#include "webhook/places.h"

namespace tabella::access {
class Secrets;
}

namespace tabella::webhook {

struct Hook {
  std::string id;
  std::string url;
  std::string secret;    // empty: not signed; sealed, unless it is the operator's
  std::string query;     // which events, in the system's own words; empty: all
  bool trusted = false;  // the operator's
};

// What a system has to say of an event to one hook.
struct Body {
  std::string json;
};
struct NotForThisHook {};
struct NotThereYet {};  // the event is still being kept: asked again later
using Rendered = std::variant<Body, NotForThisHook, NotThereYet>;
using Render = std::function<store::Async<Rendered>(const Hook& hook, const std::string& event)>;

// Thread-safe. Must outlive the schedule's run().
class Hooks {
 public:
  struct Parts {
    store::Settings& settings;
    const access::Secrets& secrets;
    schedule::Schedule& schedule;
    net::Outbound& outbound;
    const Clock& clock;
  };
  // `system` is its name, as in "mail". `fixed` are the operator's, and there whatever is added and removed.
  // Before the schedule runs.
  Hooks(std::string system, Parts parts, std::vector<Hook> fixed, Render render);
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  store::Async<std::vector<Hook>> all();
  // With the secret as it is, and without an id. An error of the kind access_denied or validation has a
  // sentence about its URL.
  store::Async<Hook> add(Hook hook);
  store::Async<bool> remove(std::string id);  // whether it was there

  // Before the event with that id is kept.
  store::Async<void> announce(std::string event);
  // Tells one hook again. False if there is none.
  store::Async<bool> replay(std::string event, std::string hook);

  void write_metrics(metrics::Exposition& out) const;

 private:
  store::Async<void> set_timer(const std::string& hook, const std::string& event);
  boost::asio::awaitable<void> deliver(const schedule::Firing& firing);
  boost::asio::awaitable<std::optional<Failure>> post(const Hook& hook, const std::string& event,
                                                      std::string body);
  void settle(const Hook& hook, const std::optional<Failure>& failure, int attempt);
  void forget_known();

  const std::string system_;
  const std::string kind_;  // of its timers
  const Parts parts_;
  const std::vector<Hook> fixed_;
  const Render render_;
  Places places_;  // by hook
  std::mutex mutex_;
  std::vector<Hook> known_;          // guarded by mutex_
  std::optional<Elapsed> known_at_;  // guarded by mutex_
  std::set<std::string> given_up_;   // guarded by mutex_; ids of hooks of which the log has been told
  metrics::Counter delivered_{0};
  metrics::Counter failed_{0};
};

}  // namespace tabella::webhook

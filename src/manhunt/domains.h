// What a domain is set to: its policies, schedules, maintenance windows and templates. One partition of the
// table, read as a whole, and kept for two seconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/recent.h"
#include "access/secrets.h"
#include "base/clock.h"
#include "manhunt/model.h"
#include "manhunt/rotation.h"
#include "store/store.h"

namespace tabella::manhunt {

struct Policy {
  std::string title;
  std::vector<PolicyStep> steps;
  int64_t repeat = 0;
  std::string routing_key;
};

struct Maintenance {
  TimePoint from;
  TimePoint to;
  std::vector<std::string> policies;  // empty: everything
};

// What is said on a channel, in a language: templates (handlebars/template.h).
struct Wording {
  std::string subject;
  std::string text;
};

struct Domain {
  std::string name;
  std::string title;
  std::string language;  // of contacts who say nothing themselves; empty: English
  bool require_verification = false;
  bool always_verified = false;  // so says who serves it, whatever the domain does
  std::string events_url;        // who is told of its searches (events.h); empty: nobody
  std::string secret;            // sealed; empty: there is none yet
  std::map<std::string, Policy, std::less<>> policies;
  std::map<std::string, OnCallSchedule, std::less<>> schedules;
  std::map<std::string, Maintenance, std::less<>> maintenance;
  std::map<std::string, Wording, std::less<>> wordings;  // by "phone#en"
  // Bytes of its rows, all of which are read together, and of each by its sort key: without the overrides,
  // which are counted.
  size_t bytes = 0;
  std::map<std::string, size_t, std::less<>> bytes_of;
  size_t overrides = 0;

  // Whether methods are used only once they are verified.
  bool uses_verified_only() const { return require_verification || always_verified; }
  // The maintenance window that is open for such a search; empty: none.
  std::string under_maintenance(std::string_view policy, TimePoint now) const;
};
using DomainView = std::shared_ptr<const Domain>;

// Where in a domain something stands.
enum class Part { policy, schedule, maintenance, wording };
std::string part_sort(Part part, std::string_view name);

// A policy that a routing key names.
struct Routed {
  std::string domain;
  std::string policy;
};

// Which policies and schedules name a contact, or a schedule: "policy shop, schedule primary". Empty: none.
std::string use_of_contact(const Domain& domain, std::string_view contact, TimePoint now);
std::string use_of_schedule(const Domain& domain, std::string_view schedule);

// As JSON has them.
Checked<Policy> read_policy(JsonValue json);
void write_policy(JsonObjectWriter& out, const Policy& policy);
Checked<Maintenance> read_maintenance(JsonValue json);
void write_maintenance(JsonObjectWriter& out, const Maintenance& maintenance);

// Thread-safe.
class Domains {
 public:
  Domains(store::Store& store, const Clock& clock, const access::Secrets& secrets, std::string table,
          bool always_verified)
      : store_(store),
        clock_(clock),
        secrets_(secrets),
        table_(std::move(table)),
        always_verified_(always_verified) {}

  // At most two seconds old; a domain that nobody has set is an empty one.
  store::Async<DomainView> find(std::string domain);
  // As it is now.
  store::Async<DomainView> read(std::string domain);

  // Title, language, and the like: what it has no rows of their own for, but for its secret.
  store::Async<void> put_settings(Domain domain);
  store::Async<void> put(std::string domain, Part part, std::string name, std::string json);
  store::Async<bool> remove(std::string domain, Part part, std::string name);  // whether it was there
  // Keeps the routing key that it has; makes one where there is none.
  store::Async<void> put_policy(std::string domain, std::string name, Policy policy);
  // Makes another routing key; the one before is good no longer. False: there is no such policy.
  store::Async<bool> change_routing_key(std::string domain, std::string name);
  // Changes a schedule as it is now. False: there is none.
  store::Async<bool> change_schedule(std::string domain, std::string name,
                                     std::function<Checked<void>(OnCallSchedule&)> change);

  store::Async<std::optional<Routed>> routed(std::string routing_key);

  // The secret of a domain, which is good as X-Manhunt-Key; made where there is none yet.
  store::Async<std::string> secret(std::string domain);
  // Makes another; the one before is good no longer.
  store::Async<void> change_secret(std::string domain);
  // Whether `key` is the secret of the domain.
  store::Async<bool> is_secret(std::string domain, std::string key);

 private:
  void forget(const std::string& domain);
  store::Async<void> write_policy_and_key(const std::string& domain, const std::string& name,
                                          const Policy& policy, const std::string& key_before);
  store::Result<std::string> open(const std::string& sealed, const std::string& domain) const;
  store::Result<std::string> make_secret(const std::string& domain) const;

  store::Store& store_;
  const Clock& clock_;
  const access::Secrets& secrets_;
  const std::string table_;
  const bool always_verified_;
  access::Recent<DomainView> known_{clock_};
  // Those that have no rows are kept apart: names that a stranger makes up push out nothing that is there.
  access::Recent<DomainView> empty_{clock_};
};

}  // namespace tabella::manhunt

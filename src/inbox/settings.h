// What tenants and their inboxes are set to: the objects TS and IC of the table.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "inbox/names.h"
#include "store/store.h"

namespace tabella::inbox {

struct TenantSettings {
  std::string title;
  std::string ttl;  // "30d"; empty: not set
  // What users' tokens are signed with (user_tokens.h), sealed; empty: there is none yet.
  std::string secret;
  std::vector<std::string> public_keys;  // PEM, for tokens that the tenant signs
};

struct InboxSettings {
  std::string title;
  std::string description;
  std::map<std::string, std::string, std::less<>> ttl;  // by category, and "default"
};

inline constexpr std::chrono::seconds kLongestTtl = std::chrono::days{730};
inline constexpr std::chrono::seconds kUsualTtl = std::chrono::days{30};

// What is wrong with a time to live; empty: nothing.
std::string problem_with_ttl(std::string_view text);

// Thread-safe. What was read is used for a few seconds.
class Settings {
 public:
  Settings(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  // Nothing: nobody has set any.
  store::Async<std::optional<TenantSettings>> tenant(std::string tenant);
  store::Async<std::optional<InboxSettings>> inbox(Place place);
  store::Async<void> put(std::string tenant, TenantSettings settings);
  store::Async<void> put(Place place, InboxSettings settings);
  // Where there is none yet; gives the one that is there.
  store::Async<std::string> put_secret(std::string tenant, std::string secret);
  store::Async<std::map<std::string, InboxSettings>> inboxes(std::string tenant);

  // For how long a message is kept: by its category, its inbox, its tenant, or as usual.
  store::Async<std::chrono::seconds> time_to_live(Place place, std::string category);

 private:
  struct Both {
    std::optional<TenantSettings> tenant;
    std::optional<InboxSettings> inbox;
    Elapsed read{0};
  };
  store::Async<Both> both(Place place);
  void forget();

  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  std::mutex mutex_;
  std::map<Place, Both> known_;  // guarded by mutex_
};

}  // namespace tabella::inbox

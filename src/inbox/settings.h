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
#include "inbox/preferences.h"
#include "inbox/schema.h"
#include "store/store.h"

namespace tabella::inbox {

struct TenantSettings {
  std::string title;
  std::string ttl;  // "30d"; empty: not set
  // What users' tokens are signed with (user_tokens.h), sealed; empty: there is none yet.
  std::string secret;
  std::vector<std::string> public_keys;  // PEM, for tokens that the tenant signs
  Wishes wishes;                         // of users who say nothing themselves
};

// Where messages go besides the bell.
struct EmailSettings {
  std::string from;
  std::string link_base;          // what links begin with that are relative; empty: they are left out
  std::chrono::seconds after{0};  // then, if it has not been read
};
struct WebhookSettings {
  std::string url;
  std::chrono::seconds after{0};
};

// Messages of a category are gathered, and come as one.
struct DigestSettings {
  std::string every;  // "1h"
  std::string title;  // with {count} and {category}
};

struct InboxSettings {
  std::string title;
  std::string description;
  std::map<std::string, std::string, std::less<>> ttl;         // by category, and "default"
  Wishes wishes;                                               // before the tenant's
  std::string schema;                                          // of messages, as JSON; empty: none
  std::shared_ptr<const Schema> checked_schema;                // the same, read; null: none
  std::map<std::string, DigestSettings, std::less<>> digests;  // by category
  std::optional<EmailSettings> email;
  std::optional<WebhookSettings> webhook;
};

// What is known of a user, for all of the tenant's inboxes.
struct Profile {
  std::string email;
  std::string name;
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
  store::Async<std::string> put_secret(std::string tenant, std::string secret, bool anew);
  store::Async<std::map<std::string, InboxSettings>> inboxes(std::string tenant);

  store::Async<std::optional<Profile>> profile(std::string tenant, std::string user);
  store::Async<void> put(std::string tenant, std::string user, Profile profile);
  store::Async<void> remove_profile(std::string tenant, std::string user);

  // What holds for messages of an inbox: its own settings, and those of its tenant behind them.
  struct Rules {
    InboxSettings inbox;
    TenantSettings tenant;

    std::chrono::seconds time_to_live(std::string_view category) const;
    // Of a user who says nothing himself. The bell is on where nobody says anything, the others are off.
    bool wants(std::string_view category, Channel channel) const;
  };
  store::Async<Rules> rules(Place place);

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

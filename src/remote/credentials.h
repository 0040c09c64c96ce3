// Who signs the requests to a remote store.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"

namespace tabella::remote {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;         // empty: none
  std::optional<TimePoint> expires;  // nothing: never
};

struct CredentialOptions {
  std::optional<Credentials> given;  // by flags: nothing else is looked at
  std::string profile;               // of the shared files; empty: AWS_PROFILE, then "default"
  // Another Tabella or DynamoDB Local takes any credentials: where none are found, some are made up, and no
  // metadata service is asked.
  bool any_will_do = false;
};

using FoundCredentials = std::expected<std::shared_ptr<const Credentials>, std::string>;

// The credentials of a process, found where AWS's SDKs find them and in their order: flags, environment,
// shared files, the container's endpoint, the instance's metadata service. What expires is fetched again
// before it does. Thread-safe.
class CredentialChain {
 public:
  CredentialChain(CredentialOptions options, const Clock& clock);
  ~CredentialChain();

  // Those to sign with now, or a sentence that says where they were looked for.
  boost::asio::awaitable<FoundCredentials> get();

  // They were refused as expired: the next get() finds new ones.
  void forget(const std::shared_ptr<const Credentials>& refused);

 private:
  boost::asio::awaitable<FoundCredentials> find();
  boost::asio::awaitable<FoundCredentials> refresh(std::shared_ptr<const Credentials> current);

  const CredentialOptions options_;
  const Clock& clock_;
  std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;  // guarded by mutex_
  bool refreshing_ = false;                     // guarded by mutex_
  TimePoint next_try_{};                        // guarded by mutex_; after a refresh that failed
};

// The single places. Each gives nothing where it does not apply, a sentence where it applies and fails.
using Place = std::expected<std::optional<Credentials>, std::string>;
Place from_environment();
Place from_files(std::string_view profile);
boost::asio::awaitable<Place> from_container();
boost::asio::awaitable<Place> from_instance();

// `"2026-11-16T03:00:00Z"`
std::optional<TimePoint> parse_iso_time(std::string_view text);

// AWS_REGION, AWS_DEFAULT_REGION or the profile's; empty if none says.
std::string default_region(std::string_view profile);

}  // namespace tabella::remote

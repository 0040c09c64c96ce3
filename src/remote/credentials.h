// Who signs the requests to a remote store.
#pragma once

#include <atomic>
#include <chrono>
#include <expected>
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

struct CredentialError {
  std::string message;   // says where they were looked for
  bool passing = false;  // an endpoint did not answer: it may the next time
};

using FoundCredentials = std::expected<std::shared_ptr<const Credentials>, CredentialError>;
using Deadline = std::chrono::steady_clock::time_point;

// The credentials of a process, found where AWS's SDKs find them and in their order: flags, a profile that
// was asked for, environment, shared files, the container's endpoint, the instance's metadata service. What
// expires is fetched again before it does, by one call for all. Thread-safe.
class CredentialChain {
 public:
  CredentialChain(CredentialOptions options, const Clock& clock);
  ~CredentialChain();

  // Those to sign with now.
  boost::asio::awaitable<FoundCredentials> get(Deadline deadline);

  // They were refused as expired: the next get() finds new ones.
  void forget(const std::shared_ptr<const Credentials>& refused);

 private:
  boost::asio::awaitable<FoundCredentials> find(Deadline deadline);
  boost::asio::awaitable<FoundCredentials> refresh(std::shared_ptr<const Credentials> usable,
                                                   Deadline deadline);

  const CredentialOptions options_;
  const Clock& clock_;
  std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;  // guarded by mutex_
  std::optional<CredentialError> last_error_;   // guarded by mutex_
  bool refreshing_ = false;                     // guarded by mutex_
  std::atomic<bool> had_role_ = false;          // they came from an endpoint once
  Elapsed next_try_{0};                         // guarded by mutex_; nobody asks again before
};

// The single places. Each gives nothing where it does not apply, an error where it applies and fails.
using Place = std::expected<std::optional<Credentials>, CredentialError>;
Place from_environment();
// `made_up_will_do`: a profile that cannot be used and that nobody asked for is passed over.
Place from_files(std::string_view profile, bool made_up_will_do = false);
boost::asio::awaitable<Place> from_container(Deadline deadline);
boost::asio::awaitable<Place> from_instance(Deadline deadline);

// "2026-11-16T03:00:00Z"
std::optional<TimePoint> parse_iso_time(std::string_view text);

// AWS_REGION, AWS_DEFAULT_REGION or the profile's; empty if none says.
std::string default_region(std::string_view profile);

}  // namespace tabella::remote

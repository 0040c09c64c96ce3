#include "remote/credentials.h"

#include <ctime>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "store/pause.h"

namespace tabella::remote {

using boost::asio::awaitable;

namespace {

// What expires is renewed this long before; if that fails it is used until shortly before its end.
constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::chrono::seconds kLastMoment{30};
constexpr std::chrono::seconds kBetweenTries{10};
constexpr std::chrono::seconds kBetweenUrgentTries{1};
constexpr std::chrono::milliseconds kLook{5};

bool has_ended(const Credentials& credentials, TimePoint now, std::chrono::seconds before) {
  return credentials.expires && *credentials.expires - now <= before;
}

// They go into headers: a line end in them, as secrets from files have it, would end the header.
FoundCredentials check(Credentials found) {
  const auto fits = [](std::string_view text) { return is_plain(text); };
  if (!fits(found.access_key) || !fits(found.secret_key) || !fits(found.session_token))
    return std::unexpected(CredentialError{
        "the AWS credentials hold blanks, line ends or other characters that no credentials have; look for a "
        "line end after the access key, the secret key or the session token"});
  return std::make_shared<const Credentials>(std::move(found));
}

}  // namespace

CredentialChain::CredentialChain(CredentialOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}
CredentialChain::~CredentialChain() = default;

awaitable<FoundCredentials> CredentialChain::get(Deadline deadline) {
  while (true) {
    std::unique_lock lock(mutex_);
    const auto now = clock_.now();
    const bool fresh = current_ && !has_ended(*current_, now, kRenewBefore);
    const bool usable = current_ && !has_ended(*current_, now, kLastMoment);
    const bool too_soon = clock_.elapsed() < next_try_;
    // What was fetched just now is the best there is, whatever our clock thinks of it.
    const bool just_fetched = current_ && too_soon && !last_error_;
    if (fresh || just_fetched || (usable && (refreshing_ || too_soon))) co_return current_;
    if (!refreshing_ && too_soon && last_error_) co_return std::unexpected(*last_error_);
    if (!refreshing_) {
      refreshing_ = true;
      auto current = usable ? current_ : nullptr;
      lock.unlock();
      co_return co_await refresh(std::move(current), deadline);
    }
    lock.unlock();
    // Somebody else is at it, and there is nothing to go on with meanwhile.
    if (std::chrono::steady_clock::now() + kLook >= deadline)
      co_return std::unexpected(CredentialError{"the AWS credentials did not come in time", true});
    co_await store::pause_for(kLook);
  }
}

awaitable<FoundCredentials> CredentialChain::refresh(std::shared_ptr<const Credentials> usable,
                                                     Deadline deadline) {
  // Lets the next one try, however this ends.
  struct Turn {
    explicit Turn(CredentialChain& c) : chain(c) {}
    ~Turn() {
      const std::lock_guard lock(chain.mutex_);
      chain.refreshing_ = false;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    CredentialChain& chain;
  };
  const Turn turn(*this);
  auto found = co_await find(deadline);
  {
    const std::lock_guard lock(mutex_);
    // Also after success: an endpoint gives the same ones until it has others.
    next_try_ = clock_.elapsed() + (found || usable ? kBetweenTries : kBetweenUrgentTries);
    last_error_.reset();
    if (found) {
      current_ = *found;
      had_role_ = had_role_ || current_->expires.has_value();
    } else {
      last_error_ = found.error();
    }
  }
  if (found || !usable) co_return found;
  log::warning("the credentials for the store could not be renewed: {}", found.error().message);
  co_return usable;
}

awaitable<FoundCredentials> CredentialChain::find(Deadline deadline) {
  if (options_.given) co_return check(*options_.given);
  const bool profile_first = !options_.profile.empty();
  for (const bool in_files : {profile_first, !profile_first}) {
    TABELLA_CO_ASSIGN(auto found,
                      in_files ? from_files(options_.profile, options_.any_will_do) : from_environment());
    if (found) co_return check(std::move(*found));
  }
  if (options_.any_will_do) co_return check({.access_key = "tabella", .secret_key = "tabella"});
  if (!environment_variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty())
    co_return std::unexpected(CredentialError{
        "AWS_WEB_IDENTITY_TOKEN_FILE is set, and web identities are not supported; use EKS Pod Identity, or "
        "unset it"});
  TABELLA_CO_ASSIGN(auto container, co_await from_container(deadline));
  if (container) co_return check(std::move(*container));
  TABELLA_CO_ASSIGN(auto instance, co_await from_instance(deadline));
  if (instance) co_return check(std::move(*instance));
  if (had_role_)
    co_return std::unexpected(CredentialError{"the instance's metadata service does not answer", true});
  co_return std::unexpected(CredentialError{
      "there are no AWS credentials: give --aws-access-key-id and --aws-secret-access-key, set "
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write them into ~/.aws/credentials, or run where a "
      "container or instance role is"});
}

void CredentialChain::forget(const std::shared_ptr<const Credentials>& refused) {
  const std::lock_guard lock(mutex_);
  if (current_ != refused) return;
  current_.reset();
  last_error_.reset();
}

std::optional<TimePoint> parse_iso_time(std::string_view text) {
  std::tm tm{};
  const std::string copy(text);
  const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
  if (!end || (*end != 'Z' && *end != '.' && *end != '\0')) return std::nullopt;
  return time_at(timegm(&tm) * 1000);
}

}  // namespace tabella::remote

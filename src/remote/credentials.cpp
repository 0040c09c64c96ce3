#include "remote/credentials.h"

#include <ctime>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"

namespace tabella::remote {

using boost::asio::awaitable;

namespace {

// What expires is renewed this long before; if that fails it is used until shortly before its end.
constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::chrono::seconds kLastMoment{30};
constexpr std::chrono::seconds kBetweenTries{10};

bool has_ended(const Credentials& credentials, TimePoint now, std::chrono::seconds before) {
  return credentials.expires && now + before >= *credentials.expires;
}

}  // namespace

CredentialChain::CredentialChain(CredentialOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}
CredentialChain::~CredentialChain() = default;

awaitable<FoundCredentials> CredentialChain::get() {
  while (true) {
    std::unique_lock lock(mutex_);
    const auto now = clock_.now();
    const bool fresh = current_ && !has_ended(*current_, now, kRenewBefore);
    const bool usable = current_ && !has_ended(*current_, now, kLastMoment);
    if (fresh || (usable && (refreshing_ || now < next_try_))) co_return current_;
    if (!refreshing_) {
      refreshing_ = true;
      auto current = usable ? current_ : nullptr;
      lock.unlock();
      co_return co_await refresh(std::move(current));
    }
    lock.unlock();
    // Somebody else is at it, and there is nothing to go on with meanwhile.
    boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor, std::chrono::milliseconds(5));
    co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

awaitable<FoundCredentials> CredentialChain::refresh(std::shared_ptr<const Credentials> current) {
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
  auto found = co_await find();
  {
    const std::lock_guard lock(mutex_);
    if (found)
      current_ = *found;
    else
      next_try_ = clock_.now() + kBetweenTries;
  }
  if (found || !current) co_return found;
  log::warning("the credentials for the store could not be renewed: {}", found.error());
  co_return current;
}

awaitable<FoundCredentials> CredentialChain::find() {
  const auto keep = [](Credentials credentials) {
    return FoundCredentials(std::make_shared<const Credentials>(std::move(credentials)));
  };
  if (options_.given) co_return keep(*options_.given);
  for (const auto& look :
       {std::function(from_environment), std::function([this] { return from_files(options_.profile); })}) {
    auto found = look();
    if (!found) co_return std::unexpected(std::move(found).error());
    if (*found) co_return keep(std::move(**found));
  }
  if (options_.any_will_do) co_return keep({.access_key = "tabella", .secret_key = "tabella"});
  auto container = co_await from_container();
  if (!container) co_return std::unexpected(std::move(container).error());
  if (*container) co_return keep(std::move(**container));
  auto instance = co_await from_instance();
  if (!instance) co_return std::unexpected(std::move(instance).error());
  if (*instance) co_return keep(std::move(**instance));
  co_return std::unexpected(
      "there are no AWS credentials: give --aws-access-key-id and --aws-secret-access-key, set "
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write them into ~/.aws/credentials, or run where a "
      "container or instance role is");
}

void CredentialChain::forget(const std::shared_ptr<const Credentials>& refused) {
  const std::lock_guard lock(mutex_);
  if (current_ == refused) current_.reset();
}

std::optional<TimePoint> parse_iso_time(std::string_view text) {
  std::tm tm{};
  const std::string copy(text);
  if (const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
      !end || (*end != 'Z' && *end != '.' && *end != '\0'))
    return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&tm));
}

}  // namespace tabella::remote

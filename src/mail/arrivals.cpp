#include "mail/arrivals.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::mail {

namespace asio = boost::asio;
using asio::awaitable;

namespace {
constexpr size_t kLongestQueue = 10'000;
constexpr size_t kRememberedArrivals = 40'000;  // more than are on their way through the stream at any time
}  // namespace

awaitable<std::optional<std::string>> Arrivals::Subscription::next(
    std::chrono::steady_clock::time_point until) {
  while (ids_.empty() && std::chrono::steady_clock::now() < until) {
    timer_.expires_at(until);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (ids_.empty()) co_return std::nullopt;
  auto id = std::move(ids_.front());
  ids_.pop_front();
  co_return id;
}

void Arrivals::Subscription::push(std::string id) {
  if (ids_.size() < kLongestQueue) ids_.push_back(std::move(id));
  timer_.cancel();
}

std::shared_ptr<Arrivals::Subscription> Arrivals::subscribe(const asio::any_io_executor& executor,
                                                            Nanoseconds now) {
  // A little earlier: clocks of several machines do not quite agree.
  auto subscription = std::make_shared<Subscription>(executor, now - 1'000'000'000);
  const std::lock_guard lock(mutex_);
  subscriptions_.remove_if([](const auto& known) { return known.expired(); });
  subscriptions_.push_back(subscription);
  return subscription;
}

bool Arrivals::anyone() {
  const std::lock_guard lock(mutex_);
  subscriptions_.remove_if([](const auto& subscription) { return subscription.expired(); });
  return !subscriptions_.empty();
}

void Arrivals::publish(const std::string& id) {
  const std::lock_guard lock(mutex_);
  // Remembered also while nobody listens: who comes a moment later is not to hear of it by the stream.
  if (!published_.insert(id).second) return;
  published_in_order_.push_back(id);
  if (published_in_order_.size() > kRememberedArrivals) {
    published_.erase(published_in_order_.front());
    published_in_order_.pop_front();
  }
  subscriptions_.remove_if([](const auto& subscription) { return subscription.expired(); });
  const auto created = created_of(id).value_or(0);
  for (const auto& weak : subscriptions_)
    if (const auto subscription = weak.lock(); subscription && created >= subscription->since_)
      asio::post(subscription->timer_.get_executor(), [subscription, id] { subscription->push(id); });
}

awaitable<void> Arrivals::look_for_others(Mail& mail) {
  const auto from = mail.now() - std::chrono::nanoseconds(mail.options().settle).count() - 1'000'000'000;
  Pace pace;
  const auto ids = co_await mail.tail(id_prefix(from) + "|", pace);
  if (!ids) co_return;
  for (auto id = ids->rbegin(); id != ids->rend(); ++id) publish(*id);
}

}  // namespace tabella::mail

#include "inbox/news.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "inbox/model.h"
#include "store/batches.h"
#include "store/pause.h"

namespace tabella::inbox {

namespace asio = boost::asio;
using asio::awaitable;

// What comes between the question and the wait is posted behind it, to the same thread.
awaitable<bool> News::Subscription::wait(std::chrono::milliseconds at_most) {
  if (!told_) {
    timer_.expires_after(at_most);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return told_.exchange(false);
}

std::shared_ptr<News::Subscription> News::subscribe(const asio::any_io_executor& executor,
                                                    std::vector<std::string> partitions) {
  std::shared_ptr<Subscription> subscription(new Subscription(executor),
                                             [this](Subscription* ended) { end(ended); });
  ++waiting_;
  const std::lock_guard lock(mutex_);
  for (auto& partition : partitions) {
    auto& waiting = waiting_for_[partition];
    subscription->listed_.emplace_back(std::move(partition), waiting.insert(waiting.end(), subscription));
  }
  return subscription;
}

void News::end(Subscription* subscription) {
  const std::unique_ptr<Subscription> ended(subscription);
  --waiting_;
  const std::lock_guard lock(mutex_);
  for (const auto& [partition, at] : ended->listed_) {
    const auto found = waiting_for_.find(partition);
    found->second.erase(at);
    if (found->second.empty()) waiting_for_.erase(found);
  }
}

void News::wake(const std::shared_ptr<Subscription>& subscription) {
  if (subscription->told_.exchange(true)) return;
  asio::post(subscription->timer_.get_executor(), [subscription] { subscription->timer_.cancel(); });
}

// Woken outside the lock: who goes away meanwhile takes it himself.
void News::tell(const std::string& partition) {
  std::vector<std::shared_ptr<Subscription>> told;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_for_.find(partition);
    if (found == waiting_for_.end()) return;
    for (const auto& weak : found->second)
      if (auto subscription = weak.lock()) told.push_back(std::move(subscription));
  }
  for (const auto& subscription : told) wake(subscription);
}

void News::stop() {
  stopping_ = true;
  for (const auto& partition : watched()) tell(partition);
}

std::vector<std::string> News::watched() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> partitions;
  partitions.reserve(waiting_for_.size());
  for (const auto& [partition, waiting] : waiting_for_) partitions.push_back(partition);
  return partitions;
}

awaitable<void> News::look_for_others(store::Store& store, std::string table,
                                      std::chrono::milliseconds every) {
  std::unordered_map<std::string, int64_t> known;
  while (!stopping_) {
    std::vector<store::Item> keys;
    for (const auto& partition : watched())
      keys.push_back(store::Row().set(kPartition, partition).set(kSort, std::string(kStatsPrefix) + kAll));
    const auto rows = co_await store::get_all(store, table, std::move(keys), {kPartition, kLastSequence});
    if (!rows) log::warning("news of inboxes could not be looked for: {}", rows.error().message);
    std::unordered_map<std::string, int64_t> now;
    if (rows)
      for (const auto& row : *rows) {
        auto partition = store::text_of(row, kPartition);
        const auto sequence = store::number_of(row, kLastSequence);
        const auto before = known.find(partition);
        if (before == known.end() || before->second != sequence) tell(partition);
        now.emplace(std::move(partition), sequence);
      }
    known = std::move(now);
    co_await store::pause_for(every);
  }
}

}  // namespace tabella::inbox

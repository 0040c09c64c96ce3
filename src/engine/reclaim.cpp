#include "engine/reclaim.h"

#include <algorithm>

#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {
namespace {

// Less is not worth the work.
constexpr uint64_t kLeast = 4u << 20;
constexpr uint64_t kLeastShare = 4;  // a quarter
// Not while deletions still come in, if that does not go on for ever.
constexpr std::chrono::seconds kQuiet{5};
constexpr std::chrono::seconds kLongest{45};
constexpr std::chrono::seconds kBetweenLooks{1};

}  // namespace

Reclaim::Reclaim(Database& database) : database_(database), thread_([this] { run(); }) {}

void Reclaim::deleted(const std::string& prefix, uint64_t bytes, uint64_t of) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  auto& entry = deleted_[prefix];
  if (entry.bytes == 0) entry.first = now;
  entry.bytes += bytes;
  entry.of = std::max(entry.of, of);
  entry.last = now;
}

void Reclaim::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_reclaims_total", "Times that deleted room was given back to the disk",
              static_cast<double>(runs_.load()));
}

void Reclaim::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  database_.stop_reclaiming();
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool Reclaim::is_worth_it(const Deleted& deleted, Clock::time_point now) const {
  const bool much = deleted.bytes >= kLeast && deleted.bytes >= deleted.of / kLeastShare;
  return much && (now - deleted.last >= kQuiet || now - deleted.first >= kLongest);
}

void Reclaim::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kBetweenLooks);
    const auto now = Clock::now();
    const auto at =
        std::ranges::find_if(deleted_, [&](const auto& entry) { return is_worth_it(entry.second, now); });
    if (at == deleted_.end() || stopping_) continue;
    const auto prefix = at->first;
    deleted_.erase(at);
    lock.unlock();
    try {
      database_.reclaim(prefix, keys::end_of(prefix));
      ++runs_;
      lock.lock();
    } catch (const std::exception& error) {
      log::warning("the room of deleted items could not be reclaimed, and is tried again: {}", error.what());
      lock.lock();
      deleted_[prefix] = {.bytes = kLeast, .of = 0, .last = now, .first = now};
    }
  }
}

}  // namespace tabella::engine

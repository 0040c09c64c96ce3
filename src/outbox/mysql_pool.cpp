#include "outbox/mysql_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"

namespace tabella::outbox {

MysqlPool::MysqlPool(MysqlUrl url, Options options)
    : url_(std::move(url)),
      options_(options),
      threads_(options.connections),
      long_work_(threads_.get_executor()) {}

MysqlPool::~MysqlPool() { threads_.join(); }

std::chrono::microseconds MysqlPool::pause_after(int attempt) {
  constexpr std::chrono::microseconds kBase = std::chrono::milliseconds(30);
  constexpr std::chrono::microseconds kCap = std::chrono::seconds(1);
  const auto bound = std::min(kBase * (int64_t{1} << (attempt - 1)), kCap);
  return std::chrono::microseconds(random_bits() % static_cast<uint64_t>(bound.count() + 1));
}

store::Error MysqlPool::as_store_error(const MysqlError& error) const {
  constexpr unsigned kTooLong = 1406;
  constexpr unsigned kNoSuchText = 1366;
  auto code = store::ErrorCode::internal;
  if (error.transient || error.busy) code = store::ErrorCode::unavailable;
  if (error.number == kTooLong || error.number == kNoSuchText) code = store::ErrorCode::validation;
  auto message = error.number == 0
                     ? fmt::format("MySQL at {}: {}", url_.shown(), error.message)
                     : fmt::format("MySQL at {}: {} (error {})", url_.shown(), error.message, error.number);
  store::Error result(code, std::move(message));
  result.unsure = error.unsure;
  return result;
}

// Another try would wait in the same queue.
MysqlError MysqlPool::too_busy() { return {.message = "too much is waiting for it", .busy = true}; }

MysqlResult<MysqlConnection> MysqlPool::take(SteadyClock::time_point deadline) {
  const auto now = SteadyClock::now();
  if (now > deadline) return std::unexpected(too_busy());
  {
    const std::lock_guard lock(mutex_);
    const auto is_old = [&](const Idle& idle) {
      return now - idle.since > MysqlConnection::kLongestIdle / 2;
    };
    std::erase_if(idle_, is_old);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back().connection);
      idle_.pop_back();
      return connection;
    }
  }
  return MysqlConnection::open(url_);
}

void MysqlPool::give_back(MysqlConnection connection) {
  const std::lock_guard lock(mutex_);
  if (connection.is_broken())
    idle_.clear();
  else
    idle_.push_back({std::move(connection), SteadyClock::now()});
}

}  // namespace tabella::outbox

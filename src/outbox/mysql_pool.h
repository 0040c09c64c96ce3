// Threads that speak to MySQL, each with a connection of its own while it works: made when needed, kept for
// the next, dropped with all others when one of them is lost (a server that ended one has ended all).
//
// Thread-safe. Work must have come back before the pool goes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "outbox/mysql_connection.h"
#include "outbox/mysql_transaction.h"
#include "outbox/mysql_url.h"
#include "store/long_work.h"
#include "store/pause.h"
#include "store/store.h"

namespace tabella::outbox {

class MysqlPool {
 public:
  struct Options {
    size_t connections = 4;
    size_t queue = 10'000;          // work that is waiting or under way; more is refused
    std::chrono::seconds wait{30};  // for one of the threads
  };

  MysqlPool(MysqlUrl url, Options options);
  ~MysqlPool();
  MysqlPool(const MysqlPool&) = delete;
  MysqlPool& operator=(const MysqlPool&) = delete;

  // Runs `work(connection)`, which gives a MysqlResult, on one of the threads, and comes back to the caller's
  // executor. Where it fails for a passing reason it is run again after a pause, up to 8 times in all: it
  // must not mind, and may remember what it did before.
  template <class Work>
  auto run(Work work) -> store::Async<typename std::invoke_result_t<Work&, MysqlConnection&>::value_type> {
    for (int attempt = 1;; ++attempt) {
      auto done = co_await once(work);
      if (done) co_return std::move(*done);
      if (!done.error().transient || attempt == kAttempts)
        co_return std::unexpected(as_store_error(done.error()));
      co_await store::pause_for(pause_after(attempt));
    }
  }

  // Runs `body(connection)` as a transaction, also more than once. It gives a MysqlResult<std::optional<T>>:
  // without a value the transaction is rolled back. It is committed once, whatever happens on the way
  // (outbox/mysql_transaction.h); an error that is `unsure` may have been a commit.
  template <class Body>
  auto transact(Body body)
      -> store::Async<typename std::invoke_result_t<Body&, MysqlConnection&>::value_type> {
    return run(MysqlTransaction<Body>(std::move(body)));
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr int kAttempts = 8;
  struct Idle {
    MysqlConnection connection;
    SteadyClock::time_point since;
  };

  template <class Work>
  auto once(Work& work) -> boost::asio::awaitable<std::invoke_result_t<Work&, MysqlConnection&>> {
    const Place place(*this);
    if (place.is_taken()) co_return std::unexpected(too_busy());
    const auto deadline = SteadyClock::now() + options_.wait;
    co_return co_await long_work_.run([&]() -> std::invoke_result_t<Work&, MysqlConnection&> {
      TABELLA_ASSIGN(auto connection, take(deadline));
      auto result = work(connection);
      give_back(std::move(connection));
      return result;
    });
  }

  // One of the places in the queue.
  class Place {
   public:
    explicit Place(MysqlPool& pool) : pool_(pool), number_(++pool.under_way_) {}
    ~Place() { --pool_.under_way_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool is_taken() const { return number_ > pool_.options_.queue; }

   private:
    MysqlPool& pool_;
    const size_t number_;
  };

  static std::chrono::microseconds pause_after(int attempt);
  store::Error as_store_error(const MysqlError& error) const;
  static MysqlError too_busy();
  MysqlResult<MysqlConnection> take(SteadyClock::time_point deadline);
  void give_back(MysqlConnection connection);

  const MysqlUrl url_;
  const Options options_;
  std::atomic<size_t> under_way_ = 0;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // guarded by mutex_; the one used last is the last
  boost::asio::thread_pool threads_;
  store::LongWork long_work_;
};

}  // namespace tabella::outbox

// The one durable timer: rows in a table of the store, so that none is lost with a process and several
// processes can share them.
//
// Every timer is handled at least once. It is handled once, unless whoever handles it dies or is cut off from
// the store in the middle of it: then somebody else does it again, and the attempt number says so. A handler
// that throws is called again, after a pause that grows.
//
// A timer is claimed by a conditional write that puts its due time off by a lease; whoever handles it puts it
// off further while he does. A claim whose due time has come, and that stands still for a lease's length by
// the observer's own clock, is taken over: clocks that disagree make timers early or late, never double.
//
// Timers that this process sets wake it when they are due; those that others set on the same store are found
// by looking, more often the more there is to do.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/metrics.h"
#include "schedule/timer.h"
#include "store/store.h"
#include "store/transactions.h"

namespace tabella::store {
class Update;
}

namespace tabella::schedule {

struct Firing {
  Timer timer;
  int attempt = 1;  // more than one: an attempt before this one was begun, and may have done its work
};

// What became of a timer that was to be cancelled.
enum class Cancelled {
  yes,      // it will not fire
  running,  // its handler has begun; it will not be called again
  unknown,  // there is no such timer, or it has fired
};

class Schedule {
 public:
  // What it throws is logged, and the timer is tried again.
  using Handler = std::function<boost::asio::awaitable<void>(const Firing&)>;

  struct Options {
    std::string table = "tabella-timers";
    std::string worker;  // unlike all others that run; empty: a name is made up
    std::chrono::milliseconds lease{30'000};
    // How often timers of other processes are looked for: when there was something to do, and at least. Where
    // there are no other processes nobody needs to look.
    std::chrono::milliseconds busy_poll{5};
    std::chrono::milliseconds poll{1'000};
    // How long after its time another process may set a timer that is found at the next look; what comes
    // later still is found by a look at everything.
    std::chrono::milliseconds set_late{2'000};
    // What `worker` begins with if the store is in this process; empty: it is elsewhere. There is one such
    // process at a time: a claim of that name that is not ours was left by one that has ended, and is free.
    // No answer of the store is lost to it: rows of timers that it has set need not stay once they have
    // fired, so that a put() that is sent again finds them.
    std::string with_store = {};
    size_t concurrency = 512;  // handlers at once
    size_t of_one_kind = 128;  // of them: one kind cannot keep the others waiting
    std::chrono::milliseconds first_retry{1'000};
    std::chrono::milliseconds longest_retry{3'600'000};
  };

  Schedule(store::Store& store, const Clock& clock, Options options);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Who handles timers of a kind. Before run(). Timers of other kinds are left to others.
  void on(std::string kind, Handler handler);

  // These from any thread.
  // Sets a timer; one of the same id is replaced.
  store::Async<void> put(Timer timer);
  // Leaves one alone that is there and has not fired. False: there is one.
  store::Async<bool> put_if_absent(Timer timer);
  // put() as a write of a transaction, so that a timer is set with what it is for, or not at all. Once the
  // transaction is made, was_set() says so.
  store::TransactWrite put_write(const Timer& timer) const;
  void was_set(const Timer& timer) { expect(timer.id, timer.at); }
  // False if there is no such timer, or it has fired. One that is being handled fires again at its new time.
  store::Async<bool> reschedule(std::string id, TimePoint at);
  // For a handler that cannot do it yet: it is called again, and that it was called does not count as an
  // attempt.
  store::Async<bool> put_off(const Firing& firing, TimePoint at);
  // Leaves one alone that is being handled.
  store::Async<bool> reschedule_waiting(std::string id, TimePoint at);
  store::Async<Cancelled> cancel(std::string id);

  // Fires what is due until stop(). A store that fails meanwhile is tried again. Not to be cancelled: stop()
  // ends it, and waits for the handlers.
  boost::asio::awaitable<void> run();
  // Lets run() finish the handlers that have begun, and return. On the thread of run().
  void stop();

  void write_metrics(metrics::Exposition& out) const;

 private:
  struct Claim;
  struct Seen {
    std::string owner;
    int64_t due = 0;
    Elapsed since{};
  };
  struct Backoff {
    Elapsed until{};
    std::chrono::milliseconds pause{0};
  };

  using SeenRows = std::unordered_map<std::string, Seen>;

  // Timers of one kind: who handles them, how many are being handled, and those that are due and wait for
  // room.
  struct Kind {
    Handler handler;
    size_t running = 0;
    std::multimap<int64_t, DueRow> waiting;  // by when they are due
    bool left_rows = false;                  // there were more, for which there was no room
    uint64_t turn = 0;                       // grows with each that is begun, over all kinds
  };

  // Looks, and makes the table before the first time. What fails is logged.
  struct Looked {
    bool failed = false;
    std::optional<int64_t> next;  // when the next is due, if that is known
  };
  boost::asio::awaitable<Looked> try_to_look();
  // At all shards: begins what is due. When the next is due, if that is known.
  store::Async<std::optional<int64_t>> look();
  store::Async<std::optional<int64_t>> look_at(int shard);
  // What a look does with a row that is due. False: it has seen enough.
  struct Looking;
  bool take(DueRow row, Looking& looking);
  bool has_room(const Kind& kind) const;
  bool is_by_who_has_store(std::string_view name) const;
  bool may_be_claimed(const DueRow& row, const SeenRows& before, SeenRows& seen) const;
  // How long it is to be left alone because it could not be claimed.
  std::optional<std::chrono::milliseconds> backoff_of(const std::string& id) const;
  void back_off(const std::string& id);

  void begin(Kind& kind, DueRow row, std::shared_ptr<Claim> claim);
  void let_go(Kind& kind, const std::string& id);
  void begin_waiting();
  boost::asio::awaitable<void> fire(DueRow row, std::shared_ptr<Claim> claim);
  store::Async<std::optional<ClaimedRow>> claim(const DueRow& row, const std::string& owner);
  boost::asio::awaitable<bool> handle(const ClaimedRow& row);
  store::Async<bool> change_due(std::string id, TimePoint at, store::Update update);
  store::Async<std::optional<item::Item>> row_behind(const store::Error& failed_condition,
                                                     const std::string& id);
  store::Async<void> finish(const ClaimedRow& row, const std::string& owner);
  store::Async<void> retry(const std::string& id, const std::string& owner, int attempt);
  boost::asio::awaitable<void> keep_claims();
  boost::asio::awaitable<void> keep(std::string id, std::shared_ptr<Claim> mine);

  std::string make_nonce() const;
  boost::asio::awaitable<void> wait(std::chrono::milliseconds length);
  void wake();
  void wake_for(TimePoint at);
  // A row will be due then: looks begin early enough to see it, and one comes when it is.
  void expect(std::string_view id, TimePoint at);
  void look_from(std::string_view id, int64_t due);
  int64_t now() const { return epoch_milliseconds(clock_.now()); }

  store::Store& store_;
  const Clock& clock_;
  const Options options_;

  // On the thread of run().
  std::map<std::string, Kind> kinds_;
  std::unordered_map<std::string, std::shared_ptr<Claim>> active_;  // by timer; those that wait for room, too
  size_t running_ = 0;                                              // how many of them are being handled
  // Where looks begin: all that was due before is in active_. What has been handled stays in the index as
  // deleted entries until the store compacts them; without this each look would read past all of them.
  std::array<int64_t, kShards> from_{};
  int64_t looked_ = 0;                                 // when the last look was
  Elapsed looked_at_all_{};                            // when the last was that began at the first row
  std::array<SeenRows, kShards> seen_;                 // overdue claims of others, by timer
  std::unordered_map<std::string, Backoff> backoffs_;  // timers that could not be claimed
  const uint64_t life_;                                // tells our claims from those of a process before us
  uint64_t claims_ = 0;                                // tried
  uint64_t turns_ = 0;                                 // begun
  bool table_made_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  size_t keeping_ = 0;  // coroutines that keep claims
  boost::asio::steady_timer* sleep_ = nullptr;

  // For what others have posted to our thread, and that comes when we are gone.
  const std::shared_ptr<Schedule*> self_ = std::make_shared<Schedule*>(this);
  std::mutex mutex_;
  std::optional<boost::asio::any_io_executor> runner_;  // guarded by mutex_; while run() runs
  int64_t next_look_ = 0;                               // guarded by mutex_; when run() wakes by itself
  std::array<int64_t, kShards> expected_{};             // guarded by mutex_; the earliest since the last look

  metrics::Counter fired_ = 0;
  metrics::Counter failed_ = 0;
  metrics::Histogram lateness_{metrics::latency_bounds()};
};

}  // namespace tabella::schedule

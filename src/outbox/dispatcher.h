// Finds emails with something to be done about them, and does it: intake, delivery, what follows from it.
//
// Work is listed in the index by_due of our table (outbox/message.h). Whoever works on a message has put its
// due time off by a lease and renews that while it is at it; when a process dies, its messages fall due, and
// others find them. What this process accepts it keeps in memory, as far as there is room, and need not look
// for.
//
// Whether a message may be sent is decided by its state alone: only who has moved it to PROCESSING sends it.
// What became of it is written down in one transaction with its next state. A message that is found in
// PROCESSING without that was being sent when its process died: nobody knows whether it arrived. That attempt
// is "unknown", and an attempt after it "repeated".
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/metrics.h"
#include "outbox/carrier.h"
#include "outbox/lanes.h"
#include "outbox/retry.h"
#include "outbox/service.h"

namespace tabella::outbox {

class Callbacks;
class Intake;
struct IntakeResult;

// What is done about an attempt of which nobody knows whether it arrived.
enum class IfUnknown { repeat, fail };

struct DispatcherOptions {
  // What names of workers begin with if the store is in this process; empty: it is elsewhere. There is one
  // such process at a time: what somebody of that name has and we have not was left by one that has ended.
  std::string with_store = {};
  std::chrono::milliseconds poll{1'000};
  size_t most_held = 1024;
  LaneOptions lanes = {};
  RetryOptions retry = {};
  IfUnknown if_unknown = IfUnknown::repeat;
  // When another program that has not moved an email on since is taken for dead.
  std::chrono::milliseconds stale = std::chrono::minutes{30};
  // The envelope's sender, so that bounces tell whose they are; empty: the message's own.
  std::function<std::string(const Message&)> sender = {};
};

// On one thread, that of the executor, but for hands() and stop().
class Dispatcher {
 public:
  Dispatcher(Outbox& outbox, Carrier& carrier, Intake& intake, Callbacks& callbacks,
             boost::asio::any_io_executor executor, DispatcherOptions options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  Outbox::Hands hands();
  // Until stop(): lets what is being sent come to its end.
  boost::asio::awaitable<void> run();
  void stop();

  void write_metrics(metrics::Exposition& out) const;

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;
  using Task = boost::asio::awaitable<void>;

  // Finding.
  boost::asio::awaitable<std::optional<int64_t>> look();
  store::Async<void> look_at(const std::string& shard, int64_t until);
  store::Async<std::optional<int64_t>> next_due();
  bool is_left(std::string_view owner) const;
  bool may_take(const DueMessage& row, int64_t now) const;
  Task begin(DueMessage row, WorkPtr work);
  store::Async<bool> claim(const DueMessage& row, Work& work);
  Task resume_paused();
  store::Async<void> unpark(const std::string& destination);

  // By state.
  Task handle(WorkPtr work);
  store::Async<void> reconcile(Message& message);
  store::Async<void> give_expiry(Work& work);
  Task handle_intake(WorkPtr work);
  Task conclude_intake(WorkPtr work, IntakeResult taken);
  Task handle_interrupted(WorkPtr work);
  Task handle_done(WorkPtr work);
  void enqueue(WorkPtr work);
  void pump();

  // Delivery.
  Task deliver(WorkPtr work, std::string destination);
  boost::asio::awaitable<std::optional<bool>> deliver_one(WorkPtr work, const std::string& destination);
  boost::asio::awaitable<bool> may_go(WorkPtr work, const std::string& destination);
  boost::asio::awaitable<bool> is_read(WorkPtr work);
  boost::asio::awaitable<bool> is_paused(WorkPtr work);
  store::Async<void> drop_suppressed(Message& message);
  store::Async<void> load_content(Work& work);
  store::Async<bool> start_attempt(Work& work);
  boost::asio::awaitable<Attempt> attempt(const Work& work);
  Task conclude(WorkPtr work, Attempt attempt);
  void apply(const Attempt& attempt, Message& message) const;
  struct Verdict {
    State state;
    std::string reason;
  };
  Verdict decide(Work& work, const Attempt& attempt) const;
  store::Async<void> write_down(Work& work, const Attempt& attempt, const Verdict& verdict);
  void count(const Attempt& attempt);
  store::Async<void> suppress_unknown_users(const Work& work, const Attempt& attempt);

  // Letting go.
  Task put_off(WorkPtr work, int64_t due);
  Task park(WorkPtr work, std::string destination);
  Task release(WorkPtr work);
  void drop(const WorkPtr& work);
  void forget(const std::string& id, const WorkPtr& work);
  store::Async<void> update(const Message& message);

  Task keep_leases();
  void spawn(Task task);
  boost::asio::awaitable<bool> wait(std::chrono::milliseconds length);
  void wake();
  const std::string& me() const { return outbox_.options().worker; }
  const std::string& table() const { return outbox_.options().messages; }

  Outbox& outbox_;
  Carrier& carrier_;
  Intake& intake_;
  Callbacks& callbacks_;
  const boost::asio::any_io_executor executor_;
  const DispatcherOptions options_;
  std::map<std::string, WorkPtr> held_;  // by id
  std::atomic<size_t> holding_{0};       // as many as that
  Lanes<WorkPtr> lanes_;
  boost::asio::steady_timer pump_timer_;
  boost::asio::steady_timer sleep_;
  std::map<std::string, std::optional<item::Item>> look_from_;  // by shard: where the next look goes on
  size_t most_skipped_ = 0;
  bool thorough_ = true;
  Elapsed last_thorough_ = Elapsed::min() / 2;
  size_t intakes_ = 0;
  bool more_ = false;  // there was more to do than there was room for
  bool woken_ = false;
  std::atomic<bool> look_asked_{false};
  bool stopping_ = false;
  size_t running_ = 0;  // tasks

  metrics::Counter delivered_{0};
  metrics::Counter deferred_{0};
  metrics::Counter refused_{0};
  metrics::Counter unknown_{0};
  metrics::Counter taken_over_{0};
};

}  // namespace tabella::outbox

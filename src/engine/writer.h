// The one writer. Every change to the store is a function that it runs on its own thread, one after the
// other: so there are no locks, each change sees those before it, and a counter that everyone increments is
// no problem.
//
// Changes that wait together form a group. The writer runs them against one batch and hands the group to the
// committer, a second thread, which writes the batch with one sync and only then lets the callers go on.
// While a group is being committed the writer runs the next one, on top of it, and goes on adding to that
// until the committer is free.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/metrics.h"
#include "engine/write_context.h"
#include "store/error.h"

namespace tabella::engine {

class Writer {
 public:
  using Mutation = std::move_only_function<void(WriteContext&)>;
  // Work in slices, run between groups so that it never holds them up for long. True when it is done.
  using Background = std::move_only_function<bool(WriteContext&)>;

  // Work that time brings. Asked between groups, `busy` while changes come; says how soon to ask again.
  using Tick = std::move_only_function<std::chrono::milliseconds(WriteContext&, bool busy)>;

  // Makes the store as it is on disk again, after a commit that failed. Throws while that cannot be done.
  using Recover = std::function<void()>;

  // Writes are refused while less than `min_free` bytes are free on the disk.
  explicit Writer(const Stored& stored, uint64_t min_free = 0);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Runs `mutation` and returns once it is durable; resumes on the caller's executor. What `mutation` refers
  // to may live in the caller's frame. Throws what it threw. An error where writes are not taken, or where
  // the commit failed: then it is unsure.
  boost::asio::awaitable<store::Result<>> execute(Mutation mutation);

  void run_in_background(Background work);
  // To be set once.
  void run_in_time(Tick tick, Recover recover);

  // Why writes are not taken, or what goes wrong in the background; empty: all is well.
  std::string problem() const;
  void write_metrics(metrics::Exposition& out) const;

  // Finishes what is queued and stops. Background work is left where it is.
  void stop();

 private:
  struct Job;
  struct Group;

  void enqueue(Job* job);
  bool has_work() const;
  bool background_due() const;

  // The writer's thread.
  void run();
  bool takes_writes();
  bool has_room();
  void try_to_recover();
  void refuse_changes(const store::Error& why);
  std::unique_ptr<Group> begin_group();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void run_background(Group& group);
  void run_tick(Group& group);
  void run_changes(Group& group);
  void hand_over(std::unique_ptr<Group> group);
  void flush_when_idle(std::unique_lock<std::mutex>& lock);

  // The committer's thread.
  void commit_groups();
  void commit(Group& group);
  void publish(const WriteContext& context);
  static void resume_callers(const std::vector<Job*>& jobs);

  const Stored stored_;
  const uint64_t min_free_;

  mutable std::mutex mutex_;
  std::condition_variable wake_writer_;
  std::condition_variable wake_committer_;
  // Guarded by mutex_:
  std::vector<Job*> queue_;
  std::vector<Background> new_background_;
  Tick new_tick_;
  std::string refusal_;                 // why writes are not taken; empty: they are
  std::string background_problem_;      // what was wrong the last time that background work ran
  std::unique_ptr<Group> handed_over_;  // waits for the committer
  bool committing_ = false;             // a group is handed over or being committed
  bool stopping_ = false;
  bool writer_done_ = false;

  // The writer's thread only:
  std::vector<Background> background_;
  Tick tick_;
  std::chrono::steady_clock::time_point next_tick_;
  std::chrono::steady_clock::time_point next_background_;
  std::chrono::steady_clock::time_point next_look_;      // at the disk
  std::chrono::steady_clock::time_point next_recovery_;  // after a commit that failed
  std::chrono::milliseconds recovery_pause_{100};
  bool room_ = true;
  Recover recover_;
  std::chrono::steady_clock::time_point last_change_;
  std::shared_ptr<const WriteContext> last_;  // the group handed over last

  // A commit that failed leaves it unknown what is on disk: nothing is written until the writer has
  // recovered.
  std::atomic<bool> failed_ = false;
  std::atomic<size_t> unflushed_ = 0;  // bytes written since the last flush

  metrics::Histogram group_sizes_{metrics::size_bounds()};
  metrics::Histogram commit_times_{metrics::latency_bounds()};

  std::thread committer_;
  std::thread thread_;
};

}  // namespace tabella::engine

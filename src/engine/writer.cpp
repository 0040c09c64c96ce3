#include "engine/writer.h"

#include <algorithm>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"

namespace tabella::engine {

namespace asio = boost::asio;

namespace {

// A store at rest keeps little in memory that is not in files.
constexpr std::chrono::milliseconds kIdle{500};
constexpr size_t kIdleFlush = 1u << 20;

// A writer that had changes to run so lately is busy.
constexpr std::chrono::milliseconds kBusy{20};

}  // namespace

struct Writer::Job {
  Change change;
  asio::any_io_executor executor;
  std::move_only_function<void()> resume;
  std::exception_ptr failure;
};

struct Writer::Group {
  std::shared_ptr<WriteContext> context;
  std::vector<Job*> jobs;
};

Writer::Writer(const Stored& stored)
    : stored_(stored), committer_([this] { commit_groups(); }), thread_([this] { run(); }) {}

Writer::~Writer() { stop(); }

asio::awaitable<void> Writer::execute(Change change) {
  Job job{.change = std::move(change),
          // Tracked: the caller's io_context must not run out of work while we hold its coroutine.
          .executor =
              asio::prefer(co_await asio::this_coro::executor, asio::execution::outstanding_work.tracked)};
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [&](auto handler) {
        job.resume = [h = std::move(handler)]() mutable { std::move(h)(); };
        enqueue(&job);
      },
      asio::use_awaitable);
  if (job.failure) std::rethrow_exception(job.failure);
}

void Writer::enqueue(Job* job) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = queue_.empty();
    queue_.push_back(job);
  }
  if (first) wake_writer_.notify_one();
}

void Writer::run_in_background(Background work) {
  {
    const std::lock_guard lock(mutex_);
    new_background_.push_back(std::move(work));
  }
  wake_writer_.notify_one();
}

void Writer::run_in_time(Tick tick) {
  {
    const std::lock_guard lock(mutex_);
    new_tick_ = std::move(tick);
  }
  wake_writer_.notify_one();
}

void Writer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_writer_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (committer_.joinable()) committer_.join();
}

bool Writer::has_work() const {
  return stopping_ || !queue_.empty() || !new_background_.empty() || new_tick_;
}

void Writer::run() {
  while (auto group = begin_group()) {
    if (!background_.empty()) run_background(*group);
    if (tick_) run_tick(*group);
    run_changes(*group);
    if (!group->jobs.empty() || !group->context->empty()) hand_over(std::move(group));
  }
  const std::lock_guard lock(mutex_);
  writer_done_ = true;
  wake_committer_.notify_one();
}

// Waits for something to do; null when there is nothing and never will be.
std::unique_ptr<Writer::Group> Writer::begin_group() {
  std::unique_lock lock(mutex_);
  if (background_.empty()) wait_for_work(lock);
  for (auto& work : new_background_) background_.push_back(std::move(work));
  new_background_.clear();
  if (new_tick_) {
    tick_ = std::exchange(new_tick_, nullptr);
    next_tick_ = std::chrono::steady_clock::now();
  }
  if (stopping_ && queue_.empty()) return nullptr;
  // Background work looks at what is committed, so all before it must be.
  if (!background_.empty()) wake_writer_.wait(lock, [this] { return !committing_; });
  auto group = std::make_unique<Group>();
  group->context = std::make_shared<WriteContext>(stored_, committing_ ? last_ : nullptr);
  return group;
}

// Until there is work or it is time for the tick. A store that has been idle for a while is flushed.
void Writer::wait_for_work(std::unique_lock<std::mutex>& lock) {
  using std::chrono::steady_clock;
  while (!has_work()) {
    const bool flush = unflushed_ >= kIdleFlush;
    auto until = tick_ ? next_tick_ : steady_clock::time_point::max();
    if (flush) until = std::min(until, last_change_ + kIdle);
    if (until == steady_clock::time_point::max())
      wake_writer_.wait(lock, [this] { return has_work(); });
    else
      wake_writer_.wait_until(lock, until, [this] { return has_work(); });
    const auto now = steady_clock::now();
    if (flush && now >= last_change_ + kIdle) flush_when_idle(lock);
    if (tick_ && now >= next_tick_) return;
  }
}

// Goes before the group's changes, which then see how far it got.
void Writer::run_background(Group& group) {
  bool done = false;
  try {
    done = background_.front()(*group.context);
  } catch (const std::exception& error) {
    log::error("background work stopped: {}", error.what());
    done = true;
  }
  if (done) background_.erase(background_.begin());
}

void Writer::run_tick(Group& group) {
  using std::chrono::steady_clock;
  const auto now = steady_clock::now();
  if (now < next_tick_) return;
  // Callers that were answered a moment ago are likely to come again: an empty queue alone says little.
  bool busy = now - last_change_ < kBusy;
  if (!busy) {
    const std::lock_guard lock(mutex_);
    busy = !queue_.empty();
  }
  std::chrono::milliseconds again{1000};
  try {
    again = tick_(*group.context, busy);
  } catch (const std::exception& error) {
    log::error("work that was due failed, and is tried again: {}", error.what());
  }
  next_tick_ = steady_clock::now() + again;
}

void Writer::run_changes(Group& group) {
  std::vector<Job*> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs = std::exchange(queue_, {});
  }
  if (!jobs.empty()) last_change_ = std::chrono::steady_clock::now();
  for (Job* job : jobs) {
    try {
      job->change(*group.context);
    } catch (...) {
      job->failure = std::current_exception();
    }
    group.jobs.push_back(job);
  }
}

// Until the committer is free, what arrives joins the group.
void Writer::hand_over(std::unique_ptr<Group> group) {
  std::unique_lock lock(mutex_);
  while (committing_) {
    wake_writer_.wait(lock, [this] { return !committing_ || !queue_.empty(); });
    if (!committing_ || queue_.empty()) continue;
    lock.unlock();
    run_changes(*group);
    lock.lock();
  }
  // The group before is committed: what is kept of a context must not keep all those before it.
  group->context->before_ = nullptr;
  last_ = group->context;
  handed_over_ = std::move(group);
  committing_ = true;
  wake_committer_.notify_one();
}

void Writer::flush_when_idle(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    stored_.database.flush();
  } catch (const DatabaseFailure& failure) {
    log::warning("{}", failure.what());
  }
  unflushed_ = 0;
  lock.lock();
}

void Writer::commit_groups() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_committer_.wait(lock, [this] { return handed_over_ || writer_done_; });
    if (!handed_over_) return;
    const auto group = std::move(handed_over_);
    lock.unlock();
    commit(*group);
    lock.lock();
    committing_ = false;
    wake_writer_.notify_one();
    lock.unlock();
    resume_callers(group->jobs);
    lock.lock();
  }
}

void Writer::commit(Group& group) {
  auto& context = *group.context;
  if (!broken_) {
    try {
      stored_.items.before_commit(context.written_);
      context.fill_batch();
      const auto begun = std::chrono::steady_clock::now();
      if (!context.batch_.empty()) stored_.database.write(context.batch_);
      commit_times_.observe(std::chrono::steady_clock::now() - begun);
      group_sizes_.observe(static_cast<double>(group.jobs.size()));
      unflushed_ += context.batch_.bytes();
      publish(context);
    } catch (const std::exception& error) {
      stored_.items.after_failure(context.written_);
      log::error("a commit failed, and nothing is written from here on: {}", error.what());
      broken_ = std::current_exception();
      failed_ = true;
    }
  }
  if (broken_)
    for (Job* job : group.jobs) job->failure = broken_;
}

void Writer::write_metrics(metrics::Exposition& out) const {
  size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = queue_.size();
  }
  out.gauge("tabella_write_queue_depth", "Changes that wait for the writer", static_cast<double>(waiting));
  out.histogram("tabella_write_group_size", "Changes that were committed together", group_sizes_);
  out.histogram("tabella_commit_seconds", "Time that commits took, the sync included", commit_times_);
  out.gauge("tabella_writes_stopped", "1 if a commit failed and nothing is written any more",
            healthy() ? 0 : 1);
}

void Writer::publish(const WriteContext& context) {
  stored_.items.after_commit(context.written_);
  for (const auto& [id, delta] : context.deltas_) {
    delta.counters->items += delta.items;
    delta.counters->bytes += delta.bytes;
  }
  for (const auto& [name, table] : context.tables_) {
    if (table)
      stored_.catalogue.put(table);
    else
      stored_.catalogue.drop(name);
  }
  for (const auto& [id, stream] : context.streams_) {
    if (stream)
      stored_.streams.put(stream);
    else
      stored_.streams.drop(id);
  }
  for (const auto& [tail, last] : context.tails_) {
    tail->last = last;
    tail->waiters.wake();
  }
}

// One post per executor wakes all of its callers. It owns them: should the executor end before it runs, they
// end with it.
void Writer::resume_callers(const std::vector<Job*>& jobs) {
  using Waiting = std::vector<std::move_only_function<void()>>;
  std::vector<std::pair<asio::any_io_executor, Waiting>> by_executor;
  for (Job* job : jobs) {
    auto at =
        std::ranges::find_if(by_executor, [&](const auto& entry) { return entry.first == job->executor; });
    if (at == by_executor.end()) at = by_executor.insert(at, {job->executor, Waiting()});
    at->second.push_back(std::move(job->resume));
  }
  for (auto& [executor, waiting] : by_executor)
    asio::post(executor, [resumed = std::move(waiting)]() mutable {
      for (auto& resume : resumed) resume();
    });
}

}  // namespace tabella::engine

#include "engine/writer.h"

#include <algorithm>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {

namespace asio = boost::asio;

namespace {

// A store at rest keeps little in memory that is not in files.
constexpr std::chrono::milliseconds kIdle{500};
constexpr size_t kIdleFlush = 1u << 20;

// A writer that had changes to run so lately is busy.
constexpr std::chrono::milliseconds kBusy{20};

// What is committed together takes as long as it is large, and those behind it wait.
constexpr size_t kGroupBytes = 4u << 20;

constexpr const char* kFailed =
    "a write to the disk failed; writes are refused until the store could be opened again";

// How often the disk is looked at.
constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{30'000};

// How soon background work that failed is tried again.
constexpr std::chrono::seconds kRetry{1};

}  // namespace

struct Writer::Job {
  Mutation mutation;
  asio::any_io_executor executor;
  std::move_only_function<void()> resume;
  std::exception_ptr failure;
  store::Result<> outcome;
};

struct Writer::Group {
  bool background = false;  // has a slice of background work before its changes
  std::shared_ptr<WriteContext> context;
  std::vector<Job*> jobs;
};

Writer::Writer(const Stored& stored, uint64_t min_free)
    : stored_(stored),
      min_free_(min_free),
      committer_([this] { commit_groups(); }),
      thread_([this] { run(); }) {}

Writer::~Writer() { stop(); }

asio::awaitable<store::Result<>> Writer::execute(Mutation mutation) {
  Job job{.mutation = std::move(mutation),
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
  co_return std::move(job.outcome);
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

void Writer::run_in_time(Tick tick, Recover recover) {
  {
    const std::lock_guard lock(mutex_);
    new_tick_ = std::move(tick);
    recover_ = std::move(recover);
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

bool Writer::background_due() const {
  return !background_.empty() && std::chrono::steady_clock::now() >= next_background_;
}

void Writer::run() {
  while (auto group = begin_group()) {
    if (!takes_writes()) continue;
    if (group->background) run_background(*group);
    if (tick_) run_tick(*group);
    run_changes(*group);
    if (!group->jobs.empty() || !group->context->empty()) hand_over(std::move(group));
  }
  const std::lock_guard lock(mutex_);
  writer_done_ = true;
  wake_committer_.notify_one();
}

std::string Writer::problem() const {
  if (failed_) return kFailed;
  const std::lock_guard lock(mutex_);
  return refusal_.empty() ? background_problem_ : refusal_;
}

bool Writer::takes_writes() {
  if (failed_) {
    try_to_recover();
    // The group was begun on what is not there any more: begin another.
    if (!failed_) return false;
    refuse_changes({store::ErrorCode::unavailable, kFailed});
    return false;
  }
  if (has_room()) return true;
  refuse_changes({store::ErrorCode::unavailable,
                  "the disk of the data folder is almost full; writes are refused until there is room "
                  "(--min-free says how much is kept free)"});
  return false;
}

// Nothing that was promised is lost by a full disk, but RocksDB does not do well on one: writes end before.
bool Writer::has_room() {
  using std::chrono::steady_clock;
  const auto now = steady_clock::now();
  if (now < next_look_) return room_;
  next_look_ = now + kTick;
  const auto free = stored_.database.free_bytes();
  // What is in memory will be written too. Not to begin and end all the time, some more is wanted to begin.
  const auto wanted = min_free_ + stored_.database.unwritten_bytes() + (room_ ? 0 : min_free_ / 8);
  const bool room = min_free_ == 0 || free >= wanted;
  if (room != room_) {
    if (room)
      log::info("there is room on the disk again: writes are taken");
    else
      log::error("only {} MB are free on the disk, and {} are wanted: writes are refused", free >> 20,
                 wanted >> 20);
  }
  room_ = room;
  if (room) {
    const std::lock_guard lock(mutex_);
    refusal_.clear();
  }
  return room;
}

// With the committer at rest.
void Writer::try_to_recover() {
  using std::chrono::steady_clock;
  {
    std::unique_lock lock(mutex_);
    wake_writer_.wait(lock, [this] { return !committing_; });
  }
  last_ = nullptr;
  background_.clear();
  if (!recover_ || steady_clock::now() < next_recovery_) return;
  if (min_free_ > 0 && stored_.database.free_bytes() < min_free_) {
    next_recovery_ = steady_clock::now() + kTick;
    return;
  }
  try {
    recover_();
    log::info("the store was opened again: writes are taken");
    recovery_pause_ = kFirstPause;
    failed_ = false;
    const std::lock_guard lock(mutex_);
    refusal_.clear();
  } catch (const std::exception& error) {
    log::error("the store cannot be opened again yet: {}", error.what());
    recovery_pause_ = std::min(2 * recovery_pause_, kLongestPause);
  }
  next_recovery_ = steady_clock::now() + recovery_pause_;
}

void Writer::refuse_changes(const store::Error& why) {
  next_tick_ = next_background_ = std::chrono::steady_clock::now() + kTick;
  std::vector<Job*> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs = std::exchange(queue_, {});
    refusal_ = why.message;
  }
  for (auto* job : jobs) job->outcome = std::unexpected(why);
  resume_callers(jobs);
}

// Waits for something to do; null when there is nothing and never will be.
std::unique_ptr<Writer::Group> Writer::begin_group() {
  std::unique_lock lock(mutex_);
  wait_for_work(lock);
  for (auto& work : new_background_) background_.push_back(std::move(work));
  new_background_.clear();
  if (new_tick_) {
    tick_ = std::exchange(new_tick_, nullptr);
    next_tick_ = std::chrono::steady_clock::now();
  }
  if (stopping_ && queue_.empty()) return nullptr;
  auto group = std::make_unique<Group>();
  group->background = background_due();
  // Background work looks at what is committed, so all before it must be.
  if (group->background) wake_writer_.wait(lock, [this] { return !committing_; });
  group->context = std::make_shared<WriteContext>(stored_, committing_ ? last_ : nullptr);
  return group;
}

// Until there is work or it is time for the tick. A store that has been idle for a while is flushed.
void Writer::wait_for_work(std::unique_lock<std::mutex>& lock) {
  using std::chrono::steady_clock;
  while (!has_work() && !background_due()) {
    const bool flush = unflushed_ >= kIdleFlush;
    auto until = tick_ ? next_tick_ : steady_clock::time_point::max();
    if (flush) until = std::min(until, last_change_ + kIdle);
    if (!background_.empty()) until = std::min(until, next_background_);
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
  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  bool done = false;
  group.context->mark();
  try {
    done = background_.front()(*group.context);
  } catch (const std::exception& error) {
    group.context->undo();
    log::error("work in the background failed, and is tried again in {} seconds: {}", kRetry.count(),
               error.what());
    next_background_ = begun + kRetry;
    // What comes after it need not wait for it.
    std::ranges::rotate(background_, background_.begin() + 1);
    const std::lock_guard lock(mutex_);
    background_problem_ =
        fmt::format("an index or the time to live of a table cannot be set up: {}", error.what());
    return;
  }
  // Changes that wait have three quarters of the time.
  const auto now = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    background_problem_.clear();
  }
  if (begun - last_change_ < kBusy) next_background_ = now + 3 * (now - begun);
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
  group.context->mark();
  try {
    again = tick_(*group.context, busy);
  } catch (const std::exception& error) {
    group.context->undo();
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
  for (auto at = jobs.begin(); at != jobs.end(); ++at) {
    if (group.context->bytes() > kGroupBytes) {
      const std::lock_guard lock(mutex_);
      queue_.insert(queue_.begin(), at, jobs.end());
      return;
    }
    Job* job = *at;
    group.context->mark();
    try {
      job->mutation(*group.context);
    } catch (...) {
      group.context->undo();
      job->failure = std::current_exception();
    }
    group.jobs.push_back(job);
  }
}

// Until the committer is free, what arrives joins the group.
void Writer::hand_over(std::unique_ptr<Group> group) {
  std::unique_lock lock(mutex_);
  while (committing_) {
    const bool full = group->context->bytes() > kGroupBytes;
    wake_writer_.wait(lock, [&] { return !committing_ || (!full && !queue_.empty()); });
    if (!committing_ || full || queue_.empty()) continue;
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
  std::string failure = "a write before this one failed";
  bool committed = false;
  if (!failed_) {
    try {
      stored_.items.before_commit(context.written_);
      context.fill_batch();
      const auto begun = std::chrono::steady_clock::now();
      if (!context.batch_.empty()) stored_.database.write(context.batch_);
      commit_times_.observe(std::chrono::steady_clock::now() - begun);
      group_sizes_.observe(static_cast<double>(group.jobs.size()));
      unflushed_ += context.batch_.bytes();
      publish(context);
      committed = true;
    } catch (const std::exception& error) {
      stored_.items.after_failure(context.written_);
      log::error("a commit failed, and nothing is written until the store was opened again: {}",
                 error.what());
      failure = error.what();
      failed_ = true;
    }
  }
  if (committed) return;
  store::Error error(
      store::ErrorCode::unavailable,
      fmt::format("the write failed on the way to the disk, and may have been made or not: {}", failure));
  error.unsure = true;
  for (Job* job : group.jobs) job->outcome = std::unexpected(error);
}

void Writer::write_metrics(metrics::Exposition& out) const {
  size_t waiting = 0;
  bool refused = false;
  {
    const std::lock_guard lock(mutex_);
    waiting = queue_.size();
    refused = failed_ || !refusal_.empty();
  }
  out.gauge("tabella_write_queue_depth", "Changes that wait for the writer", static_cast<double>(waiting));
  out.histogram("tabella_write_group_size", "Changes that were committed together", group_sizes_);
  out.histogram("tabella_commit_seconds", "Time that commits took, the sync included", commit_times_);
  out.gauge("tabella_writes_stopped", "1 while writes are refused: the disk is full, or failed",
            refused ? 1 : 0);
}

void Writer::publish(const WriteContext& context) {
  stored_.items.after_commit(context.written_);
  for (const auto& [id, delta] : context.deltas_) {
    delta.counters->items += delta.items;
    const auto bytes = delta.counters->bytes += delta.bytes;
    if (delta.bytes < 0 && stored_.reclaim)
      stored_.reclaim->deleted(delta.index ? keys::entries_of(id) : keys::items_of(id),
                               static_cast<uint64_t>(-delta.bytes),
                               static_cast<uint64_t>(bytes - delta.bytes));
  }
  if (stored_.reclaim)
    for (const auto& [prefix, bytes] : context.dropped_) stored_.reclaim->deleted(prefix, bytes, bytes);
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
// end with it. It also has what keeps the executor from running out of work, which would else be let go here,
// when the callers may have gone already and their threads with them.
void Writer::resume_callers(const std::vector<Job*>& jobs) {
  using Waiting = std::vector<std::move_only_function<void()>>;
  std::vector<std::pair<asio::any_io_executor, Waiting>> by_executor;
  for (Job* job : jobs) {
    auto at =
        std::ranges::find_if(by_executor, [&](const auto& entry) { return entry.first == job->executor; });
    if (at == by_executor.end()) at = by_executor.insert(at, {job->executor, Waiting()});
    at->second.push_back(std::move(job->resume));
  }
  for (auto& [executor, waiting] : by_executor) {
    const auto untracked = asio::prefer(executor, asio::execution::outstanding_work.untracked);
    asio::post(untracked, [kept = std::move(executor), resumed = std::move(waiting)]() mutable {
      for (auto& resume : resumed) resume();
    });
  }
}

}  // namespace tabella::engine

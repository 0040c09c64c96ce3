#include "engine/writer.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {

namespace asio = boost::asio;

namespace {

// A store at rest keeps little in memory that is not in files.
constexpr std::chrono::milliseconds kIdle{500};
constexpr size_t kIdleFlush = 1u << 20;

}  // namespace

std::optional<std::string> WriteContext::get(const std::string& key) const {
  if (const auto at = written_.find(key); at != written_.end()) return at->second;
  return items_.get(key);
}

void WriteContext::put(const std::string& key, std::string_view value) {
  written_.insert_or_assign(key, std::string(value));
}

void WriteContext::remove(const std::string& key) { written_.insert_or_assign(key, std::nullopt); }

void WriteContext::remove_items(const std::string& prefix) {
  std::erase_if(written_, [&](const auto& item) { return item.first.starts_with(prefix); });
  batch_.remove_range(prefix, keys::end_of(prefix));
}

SchemaPtr WriteContext::table(std::string_view name) const {
  if (const auto at = tables_.find(name); at != tables_.end()) return at->second;
  return catalogue_.find(name);
}

void WriteContext::put_table(SchemaPtr table) {
  batch_.put(keys::catalogue_entry(table->name()), encode_schema(*table));
  auto name = table->name();
  tables_.insert_or_assign(std::move(name), std::move(table));
}

void WriteContext::drop_table(const TableSchema& table) {
  batch_.remove(keys::catalogue_entry(table.name()));
  tables_.insert_or_assign(table.name(), nullptr);
}

void WriteContext::fill_batch() {
  std::vector<const ItemCache::Written::value_type*> items;
  items.reserve(written_.size());
  for (const auto& item : written_) items.push_back(&item);
  std::ranges::sort(items, {}, [](const auto* item) -> const std::string& { return item->first; });
  for (const auto* item : items) {
    if (item->second)
      batch_.put(item->first, *item->second);
    else
      batch_.remove(item->first);
  }
  for (const auto& [id, delta] : deltas_) {
    Counters sum;
    sum.items = delta.counters->items + delta.items;
    sum.bytes = delta.counters->bytes + delta.bytes;
    batch_.put(keys::counters(id), encode_counters(sum));
  }
}

void WriteContext::count(uint32_t id, const std::shared_ptr<Counters>& counters, int64_t items,
                         int64_t bytes) {
  if (items == 0 && bytes == 0) return;
  auto& delta = deltas_[id];
  delta.counters = counters;
  delta.items += items;
  delta.bytes += bytes;
}

struct Writer::Job {
  Change change;
  asio::any_io_executor executor;
  std::move_only_function<void()> resume;
  std::exception_ptr failure;
};

Writer::Writer(Database& database, ItemCache& items, Catalogue& catalogue)
    : database_(database), items_(items), catalogue_(catalogue), thread_([this] { run(); }) {}

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
  if (first) wake_.notify_one();
}

void Writer::run_in_background(Background work) {
  {
    const std::lock_guard lock(mutex_);
    new_background_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Writer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Writer::run() {
  while (true) {
    const auto group = next_group(!background_.empty());
    if (group.empty() && background_.empty()) return;  // stopping
    run_group(group);
  }
}

// Waits for jobs unless there is background work to go on with. Empty, with no background work: stop.
std::vector<Writer::Job*> Writer::next_group(bool background_waits) {
  std::unique_lock lock(mutex_);
  if (!background_waits) {
    const auto awaited = [this] { return stopping_ || !queue_.empty() || !new_background_.empty(); };
    if (unflushed_ >= kIdleFlush && !wake_.wait_for(lock, kIdle, awaited)) flush_when_idle(lock);
    wake_.wait(lock, awaited);
  }
  for (auto& work : new_background_) background_.push_back(std::move(work));
  new_background_.clear();
  if (stopping_ && queue_.empty()) background_.clear();
  return std::exchange(queue_, {});
}

void Writer::flush_when_idle(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    database_.flush();
  } catch (const DatabaseFailure& failure) {
    log::warning("{}", failure.what());
  }
  unflushed_ = 0;
  lock.lock();
}

void Writer::run_group(const std::vector<Job*>& group) {
  WriteContext context(database_, items_, catalogue_);
  // Background work goes first: it looks at what is committed, and the group's changes then see how far it
  // got.
  const bool background_done = !background_.empty() && run_background(context);
  for (Job* job : group) {
    try {
      job->change(context);
    } catch (...) {
      job->failure = std::current_exception();
    }
  }
  const auto failure = commit(context);
  if (failure)
    for (Job* job : group) job->failure = failure;
  else if (background_done)
    background_.erase(background_.begin());

  // One post per executor wakes all of its callers.
  std::vector<std::pair<asio::any_io_executor, std::vector<Job*>>> by_executor;
  for (Job* job : group) {
    auto at =
        std::ranges::find_if(by_executor, [&](const auto& entry) { return entry.first == job->executor; });
    if (at == by_executor.end()) at = by_executor.insert(at, {job->executor, {}});
    at->second.push_back(job);
  }
  for (auto& [executor, jobs] : by_executor) {
    asio::post(executor, [resumed = std::move(jobs)] {
      for (Job* job : resumed) {
        auto resume = std::move(job->resume);  // resuming ends the job's life
        resume();
      }
    });
  }
}

bool Writer::run_background(WriteContext& context) {
  try {
    return background_.front()(context);
  } catch (const std::exception& error) {
    log::error("background work stopped: {}", error.what());
    return true;
  }
}

std::exception_ptr Writer::commit(WriteContext& context) {
  try {
    context.fill_batch();
    items_.before_commit(context.written_);
    if (!context.batch_.empty()) database_.write(context.batch_);
    unflushed_ += context.batch_.bytes();
    publish(context);
    return nullptr;
  } catch (const std::exception& error) {
    items_.after_failure(context.written_);
    log::error("a commit failed: {}", error.what());
    return std::current_exception();
  }
}

void Writer::publish(WriteContext& context) {
  items_.after_commit(context.written_);
  for (const auto& [id, delta] : context.deltas_) {
    delta.counters->items += delta.items;
    delta.counters->bytes += delta.bytes;
  }
  for (auto& [name, table] : context.tables_) {
    if (table)
      catalogue_.put(std::move(table));
    else
      catalogue_.drop(name);
  }
}

}  // namespace tabella::engine

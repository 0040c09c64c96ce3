#include "mail/reconciler.h"

#include <algorithm>
#include <stdexcept>

namespace tabella::mail {

using boost::asio::awaitable;
using store::Async;
using store::StreamEvent;

awaitable<void> Reconciler::handle(const store::StreamRecord& record) {
  if (record.by_service || record.event == StreamEvent::modify) co_return;
  const auto key = to_key(record.keys);
  if (!key) co_return;
  const auto done = record.event == StreamEvent::insert ? co_await see_put(*key, record.created)
                                                        : co_await see_removed(key->id);
  if (!done) throw std::runtime_error(done.error().message);
}

// Indexers stay behind by what this process has asked for, at least. Half of that is for clocks that do not
// agree: what was written within the other half is ahead of all of them.
bool Reconciler::was_in_time(const MessageKey& key, TimePoint written) const {
  auto latest = written.time_since_epoch();
  // Over the wire, times of records are rounded down to the second.
  if (latest % std::chrono::seconds(1) == latest.zero()) latest += std::chrono::milliseconds(999);
  return latest - std::chrono::nanoseconds(key.created) < mail_.options().settle / 2;
}

Async<void> Reconciler::see_put(const MessageKey& key, TimePoint written) {
  TABELLA_CO_TRY(co_await mail_.expect(key.granularity));
  arrivals_.publish(key.id);
  // One that was taken away and is put again is noted as gone.
  if (was_in_time(key, written) && !was_forgotten(key.id)) co_return store::Result<void>();
  ++late_;
  co_return co_await mail_.index().add_late(key.id);
}

// What is in no segment, and never will be, need not be forgotten. Mail's own deletes of everything come
// here, and those of messages that are in the tail.
Async<void> Reconciler::see_removed(const std::string& id) {
  TABELLA_CO_ASSIGN(auto noted, co_await mail_.index().is_gone(id));
  if (noted) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(auto manifest, co_await mail_.index().manifest());
  const bool may_be_indexed =
      id > manifest.indexed_to || std::ranges::any_of(manifest.segments, [&](const auto& segment) {
        return id >= segment.first && id <= segment.last;
      });
  if (!may_be_indexed) co_return store::Result<void>();
  ++removed_;
  remember_forgotten(id);
  std::vector<std::string> ids;
  ids.push_back(id);
  co_return co_await mail_.forget(std::move(ids));
}

bool Reconciler::was_forgotten(const std::string& id) {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(forgotten_, id) != forgotten_.end();
}

void Reconciler::remember_forgotten(const std::string& id) {
  constexpr size_t kMost = 100;
  const std::lock_guard lock(mutex_);
  forgotten_.push_back(id);
  if (forgotten_.size() > kMost) forgotten_.pop_front();
}

void Reconciler::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_mail_late_total",
              "Messages that were put into the table after the index was past them",
              static_cast<double>(late_));
  out.counter("tabella_mail_removed_by_others_total", "Messages that others have deleted from the table",
              static_cast<double>(removed_));
}

}  // namespace tabella::mail

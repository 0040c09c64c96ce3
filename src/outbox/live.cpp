#include "outbox/live.h"

#include <charconv>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time_text.h"
#include "store/pause.h"

namespace tabella::outbox {

using boost::asio::awaitable;

namespace {

constexpr size_t kRemembered = 1000;
constexpr size_t kAtOnce = 200;
constexpr std::chrono::milliseconds kEvery{250};

std::string change_json(const Change& change) {
  std::string json;
  JsonObjectWriter object(json);
  object.string("id", change.id);
  object.string("status", name_of(change.status));
  object.string("reason", change.reason);
  object.string("at", time_text(change.at));
  return json;
}

std::string counts_json(const std::map<State, int64_t>& counts) {
  std::string json;
  JsonObjectWriter object(json);
  for (const auto& [state, count] : counts) object.number(name_of(state), count);
  return json;
}

}  // namespace

std::string Live::make_life() { return fmt::format("{:x}", random_bits()); }

void Live::add(std::string kind, std::string json) {
  events_.push_back({.number = ++last_, .kind = std::move(kind), .json = std::move(json)});
  if (events_.size() > kRemembered) events_.pop_front();
}

bool Live::since(uint64_t number, std::vector<Event>& events) {
  const std::lock_guard lock(mutex_);
  if (number > last_ || (!events_.empty() && number + 1 < events_.front().number)) return false;
  for (const auto& event : events_)
    if (event.number > number) events.push_back(event);
  return true;
}

// One of those who watch asks for all of them.
awaitable<void> Live::follow() {
  std::string position;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (following_ || now - followed_ < kEvery) co_return;
    // After a while in which nobody watched, those that come are not told of what was meanwhile.
    if (now - followed_ > 10 * kEvery) position_.clear();
    following_ = true;
    position = position_;
  }
  store::Result<Changes> changes;
  store::Result<std::map<State, int64_t>> counts;
  try {
    changes = co_await backend_.changes(position, kAtOnce);
    counts = co_await backend_.counts();
  } catch (const std::exception& error) {
    changes = store::fail(store::ErrorCode::internal, error.what());
  }
  const std::lock_guard lock(mutex_);
  following_ = false;
  followed_ = std::chrono::steady_clock::now();
  if (!changes || !counts) {
    position_.clear();
    log::warning("changes of emails cannot be read: {}",
                 (!changes ? changes.error() : counts.error()).message);
    co_return;
  }
  position_ = std::move(changes->position);
  for (const auto& change : changes->changes) add("email", change_json(change));
  auto json = counts_json(*counts);
  if (json == counts_) co_return;
  counts_ = json;
  add("counts", std::move(json));
}

awaitable<void> Live::tell(net::EventStream& stream, std::string last) {
  co_await follow();
  uint64_t number = 0;
  std::string counts;
  {
    const std::lock_guard lock(mutex_);
    number = last_;
    counts = counts_;
  }
  const auto prefix = life_ + "-";
  const auto id_of = [&](uint64_t of) { return fmt::format("{}{}", prefix, of); };
  uint64_t known = 0;
  if (last.starts_with(prefix))
    std::from_chars(last.data() + prefix.size(), last.data() + last.size(), known);
  std::vector<Event> events;
  if (known > 0 && since(known, events)) {
    number = known;
  } else {
    events.clear();
    if (!last.empty() && !co_await stream.send(id_of(number), "reset", "{}")) co_return;
    if (!counts.empty() && !co_await stream.send(id_of(number), "counts", counts)) co_return;
  }
  while (!stream.ended()) {
    events.clear();
    if (!since(number, events)) {
      const std::lock_guard lock(mutex_);
      number = last_;
    }
    for (const auto& event : events) {
      if (!co_await stream.send(id_of(event.number), event.kind, event.json)) co_return;
      number = event.number;
    }
    if (events.empty() && !co_await stream.keep_alive()) co_return;
    co_await store::pause_for(kEvery);
    co_await follow();
  }
}

}  // namespace tabella::outbox

#include "mail/feed.h"

#include <algorithm>
#include <stdexcept>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "mail/mailhog.h"
#include "net/websocket.h"
#include "store/pause.h"

namespace tabella::mail {

namespace asio = boost::asio;
using asio::awaitable;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kFeedSlice{100};
// What one listener may be behind.
constexpr size_t kMostEvents = 2'000;
constexpr size_t kMostBytes = 16u << 20;
// Of larger messages listeners see how they begin; the whole can be asked for by id.
constexpr size_t kLargestMessage = 1u << 20;
constexpr size_t kBatch = 16 * 1024;
constexpr size_t kCopied = 16 * 1024;  // longer events are sent from where they are
// The more listen, the less often each is told: so they leave the thread to those who send.
constexpr std::chrono::microseconds kRestForEach{150};

constexpr std::string_view kField = "data: ";

}  // namespace

// JSON has no line ends of its own: one line holds it.
Event::Event(std::string_view json) : frame_head_(net::websocket_text_head(json.size() + 1)) {
  text_.reserve(kField.size() + json.size() + 2);
  text_.append(kField).append(json).append("\n\n");
}

// With one line end, as MailHog has it.
std::string_view Event::json() const {
  return std::string_view(text_).substr(kField.size(), text_.size() - kField.size() - 1);
}

awaitable<Feed::Listener::Batch> Feed::Listener::next(SteadyClock::time_point until) {
  while (events_.empty() && !dropped_ && SteadyClock::now() < until) {
    timer_.expires_at(until);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  Batch batch;
  while (!events_.empty() && !batch.holds && batch.text.size() < kBatch) {
    auto event = std::move(events_.front());
    events_.pop_front();
    bytes_ -= event->server_sent().size();
    const bool framed = form_ == Form::websocket;
    if (framed) batch.text.append(event->frame_head());
    const auto content = framed ? event->json() : event->server_sent();
    if (content.size() <= kCopied) {
      batch.text.append(content);
    } else {
      batch.rest = content;
      batch.holds = std::move(event);
    }
  }
  co_return batch;
}

awaitable<void> Feed::Listener::rest() {
  return store::pause_for(kRestForEach * static_cast<int64_t>(listening_.load()));
}

void Feed::Listener::push(const std::shared_ptr<const Event>& event) {
  if (dropped_) return;
  events_.push_back(event);
  bytes_ += event->server_sent().size();
  if (events_.size() > kMostEvents || bytes_ > kMostBytes) {
    dropped_ = true;
    events_.clear();
    if (drop_) drop_();
  }
  timer_.cancel();
}

std::shared_ptr<Feed::Listener> Feed::listen(const asio::any_io_executor& executor, Form form) {
  auto listener = std::make_shared<Listener>(executor, form, listening_);
  const std::lock_guard lock(mutex_);
  // Here and not in run(): nothing that comes from now on is missed.
  if (!subscription_ && !stopping_) subscription_ = arrivals_.subscribe(executor_, mail_.now());
  auto group = std::ranges::find_if(groups_, [&](const auto& known) { return known->executor == executor; });
  if (group == groups_.end())
    group = groups_.insert(groups_.end(), std::make_shared<Group>(Group{.executor = executor}));
  auto& listeners = (*group)->listeners;
  listeners.remove_if([](const auto& known) { return known.expired(); });
  listeners.push_back(listener);
  return listener;
}

// Nothing while nobody listens: others need not be looked for then.
std::shared_ptr<Arrivals::Subscription> Feed::subscription() {
  const std::lock_guard lock(mutex_);
  if (listening_ == 0) subscription_.reset();
  return subscription_;
}

awaitable<void> Feed::run() {
  while (!stopping_) {
    const auto arrivals = subscription();
    if (!arrivals) {
      co_await store::pause_for(kFeedSlice);
      continue;
    }
    try {
      auto id = co_await arrivals->next(SteadyClock::now() + kFeedSlice);
      if (!id) continue;
      if (const auto event = co_await make(std::move(*id))) tell(event);
    } catch (const std::exception& error) {
      log::warning("listeners could not be told of a message: {}", error.what());
    }
  }
  // Its timer is of this thread, which ends before the feed does.
  const std::lock_guard lock(mutex_);
  subscription_.reset();
}

// Null: it is not there any more.
awaitable<std::shared_ptr<const Event>> Feed::make(std::string id) {
  std::vector<std::string> ids;
  ids.push_back(std::move(id));
  auto messages = co_await mail_.load_some(std::move(ids), Load::head);
  if (!messages) throw std::runtime_error(messages.error().message);
  if (messages->empty()) co_return nullptr;
  auto& message = messages->front();
  if (message.size <= kLargestMessage) {
    const auto completed = co_await mail_.complete(message);
    if (!completed) throw std::runtime_error(completed.error().message);
  }
  std::string json;
  append_message_json(json, message, mail_.options().hostname);
  co_return std::make_shared<const Event>(json);
}

void Feed::tell(const std::shared_ptr<const Event>& event) {
  const std::lock_guard lock(mutex_);
  for (const auto& group : groups_)
    asio::post(group->executor, [group, event] {
      for (auto place = group->listeners.begin(); place != group->listeners.end();) {
        if (const auto listener = place->lock()) {
          listener->push(event);
          ++place;
        } else {
          place = group->listeners.erase(place);
        }
      }
    });
}

}  // namespace tabella::mail

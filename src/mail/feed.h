// Tells all who listen of messages as they come, as MailHog shows them. Each message becomes JSON once, on a
// thread of its own, however many listen; a listener that does not take what it is told is dropped. So
// listeners cost those who send mail next to nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "mail/arrivals.h"
#include "mail/service.h"

namespace tabella::mail {

// One message, as both kinds of listeners are told of it; shared by all of them.
class Event {
 public:
  explicit Event(std::string_view json);
  std::string_view server_sent() const { return text_; }
  // A WebSocket's frame is its head and the JSON.
  std::string_view frame_head() const { return frame_head_; }
  std::string_view json() const;

 private:
  std::string text_;
  std::string frame_head_;
};

// Thread-safe. Outlives its listeners.
class Feed {
 public:
  enum class Form { server_sent_events, websocket };
  class Listener;

  // `executor`: of the thread that run() is on.
  Feed(Mail& mail, Arrivals& arrivals, boost::asio::any_io_executor executor)
      : mail_(mail), arrivals_(arrivals), executor_(std::move(executor)) {}

  // For messages that come from now on. On the thread of the executor, as the listener is.
  std::shared_ptr<Listener> listen(const boost::asio::any_io_executor& executor, Form form);

  // Until stop().
  boost::asio::awaitable<void> run();
  void stop() { stopping_ = true; }

 private:
  // The listeners of one thread, touched on it only.
  struct Group {
    boost::asio::any_io_executor executor;
    std::list<std::weak_ptr<Listener>> listeners;
  };

  std::shared_ptr<Arrivals::Subscription> subscription();
  boost::asio::awaitable<std::shared_ptr<const Event>> make(std::string id);
  void tell(const std::shared_ptr<const Event>& event);

  Mail& mail_;
  Arrivals& arrivals_;
  const boost::asio::any_io_executor executor_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> listening_{0};
  std::mutex mutex_;
  std::list<std::shared_ptr<Group>> groups_;              // guarded by mutex_; one for each thread
  std::shared_ptr<Arrivals::Subscription> subscription_;  // guarded by mutex_; while somebody listens
};

// On one thread.
class Feed::Listener {
 public:
  Listener(const boost::asio::any_io_executor& executor, Form form, std::atomic<size_t>& listening)
      : timer_(executor), form_(form), listening_(listening) {
    ++listening_;
  }
  ~Listener() { --listening_; }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What is to be sent: a text, and behind it, if it is long, an event as all share it.
  struct Batch {
    std::string text;
    std::string_view rest;
    std::shared_ptr<const Event> holds;  // what `rest` is of
    bool empty() const { return text.empty() && rest.empty(); }
  };
  // Empty: the time is over, or it was dropped.
  boost::asio::awaitable<Batch> next(std::chrono::steady_clock::time_point until);
  // Between two batches: the more there are who listen, the longer, so that they do not take the thread from
  // those who send.
  boost::asio::awaitable<void> rest();

  // What is done when it has too much to take: its connection is closed.
  void when_dropped(std::function<void()> drop) { drop_ = std::move(drop); }
  bool dropped() const { return dropped_; }

 private:
  friend class Feed;
  void push(const std::shared_ptr<const Event>& event);

  boost::asio::steady_timer timer_;
  const Form form_;
  std::atomic<size_t>& listening_;
  std::deque<std::shared_ptr<const Event>> events_;
  size_t bytes_ = 0;  // of them
  bool dropped_ = false;
  std::function<void()> drop_;
};

}  // namespace tabella::mail

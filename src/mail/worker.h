// What mail does in the background: the index, what is to be deleted, and the messages that other processes
// take.
#pragma once

#include <atomic>
#include <functional>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "mail/arrivals.h"
#include "mail/indexer.h"

namespace tabella::mail {

// On one thread, and better one of its own: it works in large pieces.
class Worker {
 public:
  // `shared`: other processes may be using the store.
  // `repair` is tried when the store fails: its tables may have been deleted.
  Worker(Mail& mail, Arrivals& arrivals, bool shared, std::function<store::Async<void>()> repair)
      : mail_(mail), arrivals_(arrivals), indexer_(mail), shared_(shared), repair_(std::move(repair)) {}

  // Until stop(). A store that fails meanwhile is tried again.
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> follow_others();
  // From any thread.
  void stop() {
    stopping_ = true;
    indexer_.stop();
  }

  void write_metrics(metrics::Exposition& out) const { indexer_.write_metrics(out); }

 private:
  boost::asio::awaitable<void> rest(std::chrono::milliseconds length);

  Mail& mail_;
  Arrivals& arrivals_;
  Indexer indexer_;
  const bool shared_;
  const std::function<store::Async<void>()> repair_;
  std::atomic<bool> stopping_{false};
};

}  // namespace tabella::mail

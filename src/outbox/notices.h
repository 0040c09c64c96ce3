// Notices emails that other programs have put into the tables, or moved, and makes them our work too: through
// the stream of the table, and by asking MySQL again and again.
#pragma once

#include <atomic>
#include <string>

#include "outbox/counts.h"
#include "outbox/service.h"

namespace tabella::outbox {

// On one thread.
class Notices {
 public:
  // `emails` is the table whose stream is read; empty: they are in MySQL.
  Notices(Outbox& outbox, std::string emails)
      : outbox_(outbox), emails_(std::move(emails)), counts_(outbox.store(), outbox.options().messages) {}

  // The records of the table's stream between two checkpoints. Throws what a reader is to try again for.
  boost::asio::awaitable<void> handle(std::string shard, std::span<const store::StreamRecord> records);

  // What was in the tables before anybody watched them; once. Until it is done, or stop().
  boost::asio::awaitable<void> sweep();
  // Asks the backend for changes until stop().
  boost::asio::awaitable<void> follow();
  void stop() { stopping_ = true; }

 private:
  store::Async<void> sweep_once();
  store::Async<int64_t> sweep_state(State state, TimePoint began);
  store::Async<void> follow_began();
  store::Async<TimePoint> stream_began();
  store::Async<void> notice(const std::string& id);
  store::Async<std::string> read_mark(std::string name);
  store::Async<void> write_mark(std::string name, std::string value);
  boost::asio::awaitable<void> rest(std::chrono::milliseconds length);

  Outbox& outbox_;
  const std::string emails_;
  Counts counts_;
  std::atomic<bool> stopping_{false};
};

}  // namespace tabella::outbox

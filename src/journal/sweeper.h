// Finishes what processes have left undone when they died: stagings of long appends, rows that are to be
// removed. Every process does, now and then; whoever is later finds nothing left.
#pragma once

#include <atomic>
#include <chrono>

#include <boost/asio/awaitable.hpp>

#include "journal/counts.h"
#include "journal/journal.h"

namespace tabella::journal {

class Sweeper {
 public:
  // Both outlive it.
  Sweeper(Journal& journal, Counts& counts) : journal_(journal), counts_(counts) {}

  // Until stop(), which may be called on any thread.
  boost::asio::awaitable<void> run();
  void stop() { stopping_ = true; }

 private:
  store::Async<void> sweep();
  boost::asio::awaitable<void> rest();

  Journal& journal_;
  Counts& counts_;
  std::atomic<bool> stopping_{false};
};

}  // namespace tabella::journal

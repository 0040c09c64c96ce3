// Looks through the table of events once, for those that other programs had written before its stream was
// followed: without it they would have no positions in the order of all.
#pragma once

#include <atomic>

#include <boost/asio/awaitable.hpp>

#include "journal/adoption.h"
#include "journal/journal.h"

namespace tabella::journal {

class FirstScan {
 public:
  // All outlive it.
  FirstScan(store::Store& store, const Journal& journal, Adoption& adoption)
      : store_(store), journal_(journal), adoption_(adoption) {}

  // Until all was looked through, by this process or another, or stop(), which may be called on any thread.
  // How far it is stays in the store: whoever is next goes on from there.
  boost::asio::awaitable<void> run();
  void stop() { stopping_ = true; }

 private:
  // False: there is nothing left to look at.
  store::Async<bool> scan_page();
  item::Item mark_key() const;

  store::Store& store_;
  const Journal& journal_;
  Adoption& adoption_;
  std::atomic<bool> stopping_{false};
};

}  // namespace tabella::journal

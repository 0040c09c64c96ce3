// What the files of the dispatcher share.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "outbox/dispatcher.h"

namespace tabella::outbox {

// Until a message is looked at again when the store failed.
inline constexpr std::chrono::milliseconds kAfterTrouble{5'000};

// A message that this process works on.
struct Dispatcher::Work {
  HeldMessage held;
  Elapsed renewed{};
  bool lost = false;                  // others have it now
  std::string destination = {};       // whose lane it is in
  std::string owner_before = {};      // who had it last; empty: nobody
  std::set<std::string> paused = {};  // domains that nothing is sent to now

  Message& message() { return held.message; }
  const Message& message() const { return held.message; }
  Email& email() { return held.email; }
};

}  // namespace tabella::outbox

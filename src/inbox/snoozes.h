// Messages that are put off: out of the feed until a timer brings them back, unread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inbox/boxes.h"
#include "schedule/schedule.h"

namespace tabella::inbox {

// Thread-safe.
class Snoozes {
 public:
  // `changed` is called for each box that has changed, with its partition.
  Snoozes(Boxes& boxes, const Clock& clock, schedule::Schedule& schedule,
          std::function<void(const std::string&)> changed);

  // Gives the ids that are there.
  store::Async<std::vector<std::string>> snooze(Box box, std::vector<std::string> ids, TimePoint until);

  // Of timers. A message that was snoozed again for longer, or brought back by hand, stays as it is.
  boost::asio::awaitable<void> wake(const schedule::Firing& firing);

 private:
  store::Async<void> set_timers(const Box& box, const std::vector<std::string>& ids, TimePoint at);

  Boxes& boxes_;
  const Clock& clock_;
  schedule::Schedule& schedule_;
  const std::function<void(const std::string&)> changed_;
};

// Back in the feed, and unread.
void unsnooze(State& state, int64_t sequence);

}  // namespace tabella::inbox

#include "inbox/snoozes.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kSnoozeTimer = "inbox-snooze";

}  // namespace

void unsnooze(State& state, int64_t sequence) {
  if (!state.snoozed_until) return;
  state.snoozed_until.reset();
  state.read_at.reset();
  state.unread_at = sequence;
}

Snoozes::Snoozes(Boxes& boxes, schedule::Schedule& schedule, std::function<void(const std::string&)> changed)
    : boxes_(boxes), schedule_(schedule), changed_(std::move(changed)) {
  schedule_.on(kSnoozeTimer, [this](const schedule::Firing& firing) { return wake(firing); });
}

// The timers first: what is put off comes back. Each time has a timer of its own, so that one that was to be
// replaced, and was not, still has its.
Async<std::vector<std::string>> Snoozes::snooze(Box box, std::vector<std::string> ids, TimePoint until) {
  const auto at = epoch_milliseconds(until);
  TABELLA_CO_ASSIGN(ids, co_await boxes_.change(box, std::move(ids), [](State&, int64_t) {}));
  for (const auto& id : ids) {
    const auto name = fmt::format("{}#{}#{}#{}", box.place.tenant, box.place.inbox, box.user, id);
    TABELLA_CO_TRY(co_await schedule_.put({.id = fmt::format("{}#{}#{}", kSnoozeTimer, name, at),
                                           .kind = kSnoozeTimer,
                                           .at = until,
                                           .payload = fmt::format("{}#{}", name, at)}));
  }
  co_return co_await boxes_.change(std::move(box), std::move(ids),
                                   [at](State& state, int64_t) { state.snoozed_until = at; });
}

awaitable<void> Snoozes::wake(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 5)
    co_return log::error("a timer of the inbox names no message: {}", firing.timer.payload);
  const Box box{.place = {.tenant = std::string(parts[0]), .inbox = std::string(parts[1])},
                .user = std::string(parts[2])};
  const auto at = std::stoll(std::string(parts[4]));
  const auto woken =
      co_await boxes_.change(box, {std::string(parts[3])}, [at](State& state, int64_t sequence) {
        if (state.snoozed_until == at) unsnooze(state, sequence);
      });
  if (!woken) throw std::runtime_error(woken.error().message);
  changed_(box.partition());
}

}  // namespace tabella::inbox

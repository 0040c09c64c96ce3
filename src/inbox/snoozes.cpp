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

Snoozes::Snoozes(Boxes& boxes, const Clock& clock, schedule::Schedule& schedule,
                 std::function<void(const std::string&)> changed)
    : boxes_(boxes), clock_(clock), schedule_(schedule), changed_(std::move(changed)) {
  schedule_.on(kSnoozeTimer, [this](const schedule::Firing& firing) { return wake(firing); });
}

Async<void> Snoozes::set_timers(const Box& box, const std::vector<std::string>& ids, TimePoint at) {
  for (const auto& id : ids) {
    const auto name = fmt::format("{}#{}#{}#{}", box.place.tenant, box.place.inbox, box.user, id);
    TABELLA_CO_TRY(co_await schedule_.put(
        {.id = fmt::format("{}#{}", kSnoozeTimer, name), .kind = kSnoozeTimer, .at = at, .payload = name}));
  }
  co_return store::Result<void>();
}

// The timers first: what is put off comes back. Set again where they may have fired already.
Async<std::vector<std::string>> Snoozes::snooze(Box box, std::vector<std::string> ids, TimePoint until) {
  const auto at = epoch_milliseconds(until);
  TABELLA_CO_ASSIGN(ids, co_await boxes_.change(box, std::move(ids), [](State&, int64_t) {}));
  TABELLA_CO_TRY(co_await set_timers(box, ids, until));
  TABELLA_CO_ASSIGN(auto changed, co_await boxes_.change(box, std::move(ids), [at](State& state, int64_t) {
    state.snoozed_until = at;
  }));
  if (until < clock_.now() + std::chrono::seconds(1))
    TABELLA_CO_TRY(co_await set_timers(box, changed, std::max(until, clock_.now())));
  co_return changed;
}

awaitable<void> Snoozes::wake(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 4)
    co_return log::error("a timer of the inbox names no message: {}", firing.timer.payload);
  const Box box{.place = {.tenant = std::string(parts[0]), .inbox = std::string(parts[1])},
                .user = std::string(parts[2])};
  const auto now = epoch_milliseconds(clock_.now());
  std::optional<int64_t> later;
  const auto woken =
      co_await boxes_.change(box, {std::string(parts[3])}, [&](State& state, int64_t sequence) {
        later.reset();
        if (state.snoozed_until > now)
          later = state.snoozed_until;
        else
          unsnooze(state, sequence);
      });
  if (!woken) throw std::runtime_error(woken.error().message);
  // Of a change that was planned and not made: the timer is of another time.
  if (later) {
    const auto set = co_await set_timers(box, {std::string(parts[3])}, time_at(*later));
    if (!set) throw std::runtime_error(set.error().message);
  }
  changed_(box.partition());
}

}  // namespace tabella::inbox

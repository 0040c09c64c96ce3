// A step of a search, as it is begun: who is asked, the rows that say so, and the timers that carry it on.
// All of them are written in one transaction, so that a step is begun once, with its timers or not at all.
#pragma once

#include <string>
#include <vector>

#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::manhunt {

inline constexpr const char* kStepTimer = "manhunt-step";
inline constexpr const char* kEndTimer = "manhunt-end";
inline constexpr const char* kUndeliveredTimer = "manhunt-undelivered";
// A kind for each channel: one whose providers are slow does not keep the others waiting.
std::string attempt_timer_kind(ChannelKind kind);

// Names of a search's timers.
std::string step_timer(const std::string& search, const AttemptId& id);
std::string end_timer(const std::string& search);

// The timer of a search's next step, or of its end where there is none. Whoever handles it finds out whether
// it is time.
store::Async<void> bring_forward(schedule::Schedule& schedule, std::string search, AttemptId next,
                                 TimePoint at);

// What begins an attempt of a track at `at`.
schedule::Timer attempt_timer(const std::string& search, const AttemptId& id, const Track& track,
                              TimePoint at);

// The same, for one that was begun before.
schedule::Timer attempt_timer(const Attempt& attempt, TimePoint at);

// Rows and timers that are written together.
struct Plan {
  std::vector<store::TransactWrite> writes;
  std::vector<schedule::Timer> timers;

  void set(const schedule::Schedule& schedule, schedule::Timer timer);
  // Once the writes are made.
  void were_made(schedule::Schedule& schedule) const;
};

// Who is asked at a step that begins at `now`; its delays count from `started`.
store::Async<Step> make_step(Contacts& contacts, const Search& search, const AttemptId& id,
                             const Domain& domain, TimePoint now, TimePoint started);
// Adds what begins it.
void plan_step(Plan& plan, const schedule::Schedule& schedule, const std::string& table, const Search& search,
               const Step& step);

}  // namespace tabella::manhunt

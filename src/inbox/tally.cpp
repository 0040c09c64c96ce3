#include "inbox/tally.h"

namespace tabella::inbox {

bool is_unread(const State& state, const Marks& marks) {
  if (state.read_at || state.redacted) return false;
  const auto& mark = marks.read_of(state.category);
  return state.unread_at > mark.own || state.arrived > (state.receipt ? mark.broadcast : mark.own);
}

bool is_unseen(const State& state, const Marks& marks) {
  return is_unread(state, marks) && state.arrived > (state.receipt ? marks.seen.broadcast : marks.seen.own);
}

Tally tally_of_broadcast(const std::string& category, int64_t arrived, const Marks& marks) {
  const State untouched{.receipt = true, .category = category, .arrived = arrived};
  return {.total = 1, .unread = is_unread(untouched, marks), .unseen = is_unseen(untouched, marks)};
}

Tally tally_of(const State& state, const Marks& marks) {
  Tally tally;
  if (!state.redacted) {
    tally.published = state.receipt ? 0 : 1;
    tally.read = state.read_at ? 1 : 0;
    tally.archived = state.archived_at ? 1 : 0;
    tally.snoozed = !state.archived_at && state.snoozed_until ? 1 : 0;
  }
  if (!state.hidden()) {
    tally.total = 1;
    tally.unread = is_unread(state, marks);
    tally.unseen = is_unseen(state, marks);
  }
  return state.receipt ? tally - tally_of_broadcast(state.category, state.arrived, marks) : tally;
}

}  // namespace tabella::inbox

// What both layouts have in common: how their keys are written, and what of an event is in either.
//
//   <journal>-P-<pid>-<number>    events
//   <journal>-SH-<pid>-<shard>    how far they go: counters, of which the highest counts
//   <journal>-SL-<pid>-<shard>    how far they were deleted
//
// Nothing in a key is escaped: the name of a journal ends at the first of the marks, of which it has none,
// and the number follows the last '-'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/layout.h"
#include "store/rows.h"

namespace tabella::journal {

inline constexpr uint64_t kHighestNumber = INT64_MAX;

enum class KeyKind { event, high_counter, low_counter };

std::string key_text(const Entity& entity, KeyKind kind, uint64_t number);

// An event's key, taken apart. Nothing for those of counters, and for what is no key of ours.
struct EventKey {
  Entity entity;
  uint64_t number = 0;  // the last part: of the event, or of its block
};
std::optional<EventKey> read_event_key(std::string_view text);

// The number that a key ends with, if it is written as we would write it.
std::optional<uint64_t> last_number(std::string_view key);

// What of an event is called the same in both layouts.
void add_event(store::Row& row, const NewEvent& event, const Recording& recording);

// With a stream of keys.
store::TablePlan plan_events(const std::string& table, std::vector<store::AttributeDefinition> keys);

}  // namespace tabella::journal

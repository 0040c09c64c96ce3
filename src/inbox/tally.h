// What the counters of an inbox count, and what each message adds to them.
//
// A counter is the sum of what all rows add, less a base. Whether a message is unread depends on how far its
// user has marked everything as read (Marks); when that moves, no row is touched: the base becomes what the
// counter is. So marking all is one write, and counting reads no messages.
//
// A broadcast is one row for everybody. It counts for each user by its place in the list of broadcasts; what
// a user's receipt adds is the difference between that and what became of it with this user.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tabella::inbox {

struct Tally {
  int64_t published = 0;  // messages of the user's own
  int64_t read = 0;       // those that were marked one by one, broadcasts too
  int64_t total = 0;      // in the feed: neither archived nor snoozed
  int64_t unread = 0;     // of the total
  int64_t unseen = 0;     // of the unread
  int64_t archived = 0;
  int64_t snoozed = 0;

  bool operator==(const Tally&) const = default;
};

// Each counter with the attribute that it is kept in.
struct Counter {
  const char* name;
  int64_t Tally::* field;
};
inline constexpr const char* kPublished = "published";
inline constexpr Counter kCounters[] = {{kPublished, &Tally::published}, {"read", &Tally::read},
                                        {"total", &Tally::total},        {"unread", &Tally::unread},
                                        {"unseen", &Tally::unseen},      {"archived", &Tally::archived},
                                        {"snoozed", &Tally::snoozed}};

inline Tally& operator+=(Tally& a, const Tally& b) {
  for (const auto& counter : kCounters) a.*counter.field += b.*counter.field;
  return a;
}
inline Tally& operator-=(Tally& a, const Tally& b) {
  for (const auto& counter : kCounters) a.*counter.field -= b.*counter.field;
  return a;
}
inline Tally operator-(Tally a, const Tally& b) { return a -= b; }

// By category, and under "*" for all.
using Tallies = std::map<std::string, Tally, std::less<>>;

// A place in the order of a box's changes; and one in that of the broadcasts.
struct Mark {
  int64_t own = 0;
  int64_t broadcast = 0;
  bool operator==(const Mark&) const = default;
};

// Up to where everything was marked.
struct Marks {
  Mark read;
  Mark seen;
  std::map<std::string, Mark, std::less<>> read_in;  // of a category alone, where that is further
  bool operator==(const Marks&) const = default;

  const Mark& read_of(const std::string& category) const {
    const auto found = read_in.find(category);
    return found == read_in.end() ? read : found->second;
  }
};

// A message as one user has it. Times are milliseconds since 1970, sequences are places in the order of
// changes.
struct State {
  bool receipt = false;   // of a broadcast, which is somewhere else
  std::string category;   // empty: none
  int64_t arrived = 0;    // sequence; a receipt has that of the broadcast
  int64_t unread_at = 0;  // sequence of when it was marked as unread again
  std::optional<int64_t> read_at;
  std::optional<int64_t> archived_at;
  std::optional<int64_t> snoozed_until;
  bool redacted = false;

  bool operator==(const State&) const = default;
  bool hidden() const { return redacted || archived_at || snoozed_until; }
};

bool is_unread(const State& state, const Marks& marks);
bool is_unseen(const State& state, const Marks& marks);

// What a broadcast counts for who has no receipt of it.
Tally tally_of_broadcast(const std::string& category, int64_t arrived, const Marks& marks);
// What a row adds to its user's counters.
Tally tally_of(const State& state, const Marks& marks);

}  // namespace tabella::inbox

// The rows of an inbox: the only place that knows their attributes. docs/inbox.md, "The table", has all of
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "inbox/names.h"
#include "inbox/preferences.h"
#include "inbox/tally.h"
#include "store/rows.h"
#include "store/tables.h"

namespace tabella::inbox {

// Two local indexes: what is due to expire, and what has changed since.
inline constexpr const char* kExpiryIndex = "expiry";
inline constexpr const char* kChangesIndex = "changes";
inline constexpr const char* kExpires = "expiredat";
inline constexpr const char* kSequence = "seq";          // of a message: of its last change
inline constexpr const char* kLastSequence = "lastseq";  // of c#*; it stands in no index

store::TablePlan plan_inbox_table(const std::string& name);

// A row that has expired stays for so long, so that whoever counts finds it and takes it off (boxes.h).
inline constexpr std::chrono::seconds kGrace = std::chrono::days{7};

// What a message says; the same for all who get it.
struct Content {
  std::string id;
  std::string category;  // empty: none
  bool everyone = false;
  std::string sender;
  std::string label;
  std::string host_system_id;
  int64_t received = 0;  // milliseconds
  int64_t expires = 0;   // the second from which on it is gone
  std::string message;   // a map {title, body, cta_uri, …} in the flat form of item/value.h
  std::string group;     // by which it can be redacted together with others; empty: none
  bool opt_in = false;   // only for who has the bell of its category switched on
  // Milliseconds: until then it is gathered with others, and comes with them as one (digests.h); 0: it is
  // not.
  int64_t gathered_until = 0;
};

// Plain JSON as the value of an attribute, and back: objects are maps, arrays lists. An error says what
// DynamoDB cannot keep, or that it is longer than `most` bytes.
Checked<void> append_value(std::string& out, JsonValue json, size_t most, int depth = 0);
void append_plain_json(std::string& out, item::ValueView value);

// A user's own message, or a broadcast in the public box.
store::Row message_row(const Box& box, const Content& content, int64_t sequence, int64_t delivered);

struct StoredMessage {
  std::string id;
  State state;
  int64_t sequence = 0;  // of its last change
  int64_t expires = 0;   // 0: a tombstone
  bool opt_in = false;   // a broadcast for who has the bell of its category switched on
  store::Item row;
};
StoredMessage read_message(store::Item row);

// What it says and who it is from, for its reader.
void write_content(JsonObjectWriter& out, const StoredMessage& message);

// Writes what became of a message; `before` is what was there, nothing for a receipt that is new.
store::Update state_update(const std::string& table, const Box& box, const StoredMessage& message,
                           const std::optional<State>& before, int64_t sequence);
// What a message says, as a value; and that it says something else.
item::ValueView content_of(const StoredMessage& message);
store::Update content_update(const std::string& table, const Box& box, const StoredMessage& message,
                             const item::Value& content, int64_t sequence);
// What is left of a message that was redacted.
store::Put tombstone(const std::string& table, const Box& box, const StoredMessage& message, int64_t sequence,
                     TimePoint now);

// The counters of a box, all of its rows c#….
struct Stats {
  bool joined = false;   // whether there are any
  int64_t sequence = 0;  // of its last change
  Marks marks;
  Tallies counters;
  Tallies base;
  int64_t redactions = 0;  // the last redaction of a broadcast that its receipts know of
  int64_t checked = 0;     // milliseconds: what had expired by then is counted no more
  Wishes wishes;
  BellHistory bell;

  Tally reported(std::string_view category) const;
};
Stats read_stats(const std::vector<store::Item>& rows);
void read_stats_row(Stats& stats, item::ItemView row);

// A change of the row c#*, through which every change of a box goes: it fails if there was another since
// `stats`.
store::Update stats_update(const std::string& table, const Box& box, const Stats& stats, int64_t sequence,
                           TimePoint now);
void set_marks(store::Update& update, const Marks& marks, const Tallies& base);
void add_tally(store::Update& update, const Tally& tally);
// Of a category; "" is none, and changes nothing.
store::Update category_update(const std::string& table, const Box& box, std::string_view category,
                              const Tally& tally);

// What a new message does to the row c#*: it is the latest change of the box, and fails where it is not.
// Reads nothing before. Whoever is new has all broadcasts so far behind him.
store::Update arrival_update(const std::string& table, const Box& box, const Tally& tally, int64_t sequence,
                             TimePoint now);
// That the user wants such a message in the bell; and whether that was in the way, of the row c#* that a
// condition failed on.
store::Condition bell_is_on(const Content& content);
bool bell_is_off(item::ItemView row, const Content& content);
void set_wishes(store::Update& update, const Wishes& wishes, const BellHistory& bell);
// As the value of an attribute, and back.
item::Value wishes_value(const Wishes& wishes);
Wishes read_wishes(item::ItemView row, const char* attribute);
// How far a box has come, of the row c#* that a condition failed on.
int64_t sequence_of(item::ItemView row);
// That a redaction of a broadcast is the latest change.
void set_redactions(store::Update& update, int64_t sequence);
void set_checked(store::Update& update, TimePoint now);

}  // namespace tabella::inbox

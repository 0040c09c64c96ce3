// Events, as they are handed in and as they are stored. Plain data.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "item/value.h"
#include "journal/persistent_message.h"

namespace tabella::journal {

// Whose events they are: a persistence id, in one of the journals of a table.
struct Entity {
  std::string journal;
  std::string pid;

  bool operator==(const Entity&) const = default;
};

// What is wrong with the name of a journal, of an entity, or with a tag, as a sentence; empty: nothing.
std::string problem_with_journal(std::string_view name);
std::string problem_with_pid(std::string_view pid);
std::string problem_with_tag(std::string_view tag);
// So that a pid and its journal's name fit into the shortest key that they are in, the sort key of Heads.
inline constexpr size_t kLongestJournal = 64;
inline constexpr size_t kLongestPid = 900;
inline constexpr size_t kLongestTag = 128;

// Entities are spread over slices by a hash of their ids, the one that Akka and Pekko use.
inline constexpr int kSlices = 1024;
int slice_of(std::string_view pid);

// How Akka and Pekko name what turns payloads into bytes; theirs for arrays of bytes is 4.
inline constexpr int64_t kByteArraySerializer = 4;

// An event that is to be appended.
struct NewEvent {
  std::string payload;
  bool is_json = false;  // the payload is one JSON value, else bytes
  std::string type;      // what it is called; may be empty
  std::string metadata;  // one JSON value; may be empty
  std::vector<std::string> tags = {};
  std::string id = {};  // empty: one is made
  int64_t serializer = kByteArraySerializer;
  std::string manifest = {};  // for the serializer
};

struct EventAttributes;  // journal/event_attributes.h

// An event as it is stored: its row, looked at. Whoever wrote it: what is missing or of another type than it
// should be is empty, 0 or false. Views borrow from the event, and end when it is moved.
class Event {
 public:
  Event(item::Item row, uint64_t number, const EventAttributes& names);

  uint64_t number() const { return number_; }  // of its entity's events, from 1 on
  std::string_view payload() const;
  bool is_json() const;
  std::string_view type() const;
  std::string_view metadata() const;
  std::string id() const;  // the one it was given, or its append's and its number
  std::vector<std::string> tags() const;
  std::vector<std::string> confirmations() const;
  int64_t serializer() const;
  std::string_view manifest() const;
  std::string_view writer() const;        // the append, or what another program calls its writer
  std::optional<TimePoint> time() const;  // when it was appended
  uint64_t epoch() const;
  std::optional<TimePoint> expires() const;
  // Which append it came with, if it was one of ours. Empty: another program's.
  std::string_view append_id() const;
  // It says itself that it is deleted: another program's, or one of a layout that marks them.
  bool is_deleted() const;
  // Of events that were not written in one transaction: their place among those that belong together, and the
  // place of the last of them.
  struct BatchPlace {
    uint64_t index = 0;
    uint64_t last = 0;
  };
  std::optional<BatchPlace> batch_place() const;
  // The numbers that another program wrote together with it, one row after the other. None: it stands for
  // itself, or what it says is not believed. Ours are whole where the head says that they are there.
  struct Batch {
    uint64_t first = 0;
    uint64_t last = 0;

    bool operator==(const Batch&) const = default;
  };
  static constexpr uint64_t kMostInBatch = 5'000;
  std::optional<Batch> foreign_batch() const;

  const item::Item& row() const { return row_; }

 private:
  // The attributes that are looked at.
  enum Field : uint8_t {
    kPayload,
    kMessage,
    kSerializer,
    kManifest,
    kWriter,
    kIndex,
    kLast,
    kConfirmations,
    kDeleted,
    kTime,
    kId,
    kType,
    kMetadata,
    kTags,
    kEpoch,
    kExpires,
    kIsJson,
    kFields
  };
  static Field field_of(std::string_view name, const EventAttributes& names);

  bool is_ours() const { return integer(kTime).has_value(); }
  std::optional<item::ValueView> value(Field field) const;
  std::string_view text(Field field) const;
  std::optional<int64_t> integer(Field field) const;
  std::optional<uint64_t> count(Field field) const;
  std::vector<std::string> strings(Field field) const;
  std::optional<PersistentMessage> message() const;

  // Where in the row's bytes each value is, all found at once when the event is made: events are replayed by
  // the hundred thousand. Of size 0: it is not there.
  struct Place {
    uint32_t offset = 0;
    uint32_t size = 0;
  };

  item::Item row_;
  uint64_t number_;
  bool message_is_payload_;  // a layout has both in one attribute
  std::array<Place, kFields> places_{};
};

}  // namespace tabella::journal

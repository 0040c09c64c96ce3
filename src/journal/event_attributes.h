// What the attributes of an event's row are called.
#pragma once

#include <string_view>

namespace tabella::journal {

// Those that differ between the layouts.
struct EventAttributes {
  std::string_view payload;
  // Where other programs have a PersistentMessage (journal/persistent_message.h). Where it is the payload's
  // own, a row that is not ours has a message in it.
  std::string_view message;
};

namespace event_attributes {

// Akka's and Pekko's.
inline constexpr std::string_view kSerializer = "ev_ser_id";
inline constexpr std::string_view kSerializerManifest = "ev_ser_manifest";
inline constexpr std::string_view kWriter = "writer_uuid";
inline constexpr std::string_view kBatchIndex = "idx";
inline constexpr std::string_view kBatchLast = "cnt";  // the index of the last, and not how many there are
inline constexpr std::string_view kConfirmations = "confirmations";
inline constexpr std::string_view kDeleted = "deleted";  // "true" or "false", a string

// Ours.
inline constexpr std::string_view kTime = "at";  // milliseconds; the row is ours if it is there
inline constexpr std::string_view kId = "eid";
inline constexpr std::string_view kType = "type";
inline constexpr std::string_view kMetadata = "meta";
inline constexpr std::string_view kTags = "tags";
inline constexpr std::string_view kEpoch = "ep";
inline constexpr std::string_view kExpires = "expires";  // seconds, the table's time to live
inline constexpr std::string_view kIsJson = "json";      // of snapshots, too

}  // namespace event_attributes
}  // namespace tabella::journal

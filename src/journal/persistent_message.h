// Akka's PersistentMessage, in which its plugins for DynamoDB used to keep an event: Protocol Buffers, with
// the serialized event inside. Read only: what we write has the event as it is.
//
// The bytes are a stranger's: whatever they are, nothing outside of them is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tabella::journal {

// Views into the bytes that it was read from. Texts are valid UTF-8, and empty where they are not.
struct PersistentMessage {
  int32_t serializer = 0;
  std::string_view payload;
  std::string_view serializer_manifest;
  std::string_view writer;
  int64_t timestamp = 0;  // milliseconds; 0: not known
  bool deleted = false;
};

// Nothing where the bytes are no such message, or one without a payload.
std::optional<PersistentMessage> read_persistent_message(std::string_view bytes);

// What Akka's old snapshots are wrapped in: how long the header is, the header with the serializer and its
// manifest, and the rest is the snapshot. Numbers have four bytes, the lowest first.
struct WrappedSnapshot {
  int32_t serializer = 0;
  std::string_view serializer_manifest;
  std::string_view payload;
};

std::optional<WrappedSnapshot> read_wrapped_snapshot(std::string_view bytes);

}  // namespace tabella::journal

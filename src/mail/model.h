// The items of mail's table, as the document lays them out: the only place that knows their attribute names.
//
//   CreatedDate (key)  the partition; ID (key)  the id; Expires  when it goes, in seconds
//   Msg                the message as mhdynamo writes it, so that it can read ours
//   Size, User, Read, Tags   ours
//   Bytes              the raw bytes, where Msg cannot have them: text in items is UTF-8
//   Head, Chunks, Body of a message that does not fit into an item: how it begins, how many items hold it,
//   and
//                      what those are called
//
// They have the partition "chunks|<body>" and, as ID, their number; their bytes are in Data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "item/value.h"
#include "mail/id.h"
#include "store/tables.h"

namespace tabella::mail {

struct Message {
  std::string id;
  Nanoseconds created = 0;
  int64_t expires = 0;  // seconds since 1970
  std::string helo;
  std::string peer;  // the address it came from
  std::string user;  // who authenticated; empty: nobody
  std::string from;  // of the envelope
  std::vector<std::string> to;
  std::string raw;  // as it was received; only how it begins, if `whole` is false
  bool whole = true;
  uint64_t size = 0;  // of the whole
  size_t chunks = 0;  // items that hold it; 0: all is in one
  std::string body;   // what those are called
  bool read = false;
  std::vector<std::string> tags;
  Granularity granularity = Granularity::day;
};

store::TablePlan messages_plan(const std::string& table);

// The message's own item; nothing if it does not fit into one and has no chunks.
std::optional<item::Item> to_item(const Message& message, const std::string& hostname);
// The items that hold a message that is too large for one, under its `body`.
std::vector<item::Item> to_chunks(const Message& message);

// Nothing if it is no message.
std::optional<Message> to_message(item::ItemView row);

// What the key of a row says; nothing if it is none of a message.
struct MessageKey {
  std::string id;
  Nanoseconds created = 0;
  Granularity granularity = Granularity::day;
};
std::optional<MessageKey> to_key(item::ItemView row);

// The attributes that it takes to know of a message and to delete it: all but its text, and little to read.
std::vector<std::string> without_message();

item::Item key_of(const std::string& id, Granularity granularity);
std::vector<item::Item> chunk_keys(const Message& message);
std::string chunk_bytes(item::ItemView row);

inline constexpr const char* kPartition = "CreatedDate";
inline constexpr const char* kId = "ID";
inline constexpr const char* kRead = "Read";
inline constexpr const char* kTags = "Tags";

// The header that says how the message came here.
std::string received_value(const Message& message, const std::string& hostname);
// What is put in front of the raw bytes when they leave.
std::string trace_headers(const Message& message, const std::string& hostname);

}  // namespace tabella::mail

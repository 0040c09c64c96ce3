// Requests that bring events or snapshots, read: what is to be stored, or what is wrong with them.
#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <string_view>

#include "journal/event.h"
#include "journal/journal.h"
#include "journal/snapshots.h"
#include "net/call.h"

namespace tabella::journal {

inline constexpr size_t kMaxEvent = 350 * 1024;  // a row has at most 400 KB, its keys included
inline constexpr size_t kMaxAppendBody = Journal::kMostBytes * 3 / 2;  // base64 takes a third more
inline constexpr size_t kMostTags = 20;

struct BadRequest {
  int status = 400;
  std::string message;
};
template <class T>
using Read = std::expected<T, BadRequest>;

// A text that others will see in lists and keys: that it is UTF-8 of at most so many bytes, without control
// characters.
Read<void> check_text(std::string_view name, std::string_view text, size_t most);

// Whether the body is JSON that says what to store, as by its type, or as curl -d sends it. Everything else
// is stored as it came.
bool is_described(const net::HttpRequest& request);

// {"events": [{"data": …}, …], "expected": …, …}; nothing in the query, where nobody would look at it.
Read<Append> read_append(Entity entity, const net::Call& call);
// One event, which is the body; all else is in the query.
Read<Append> read_raw_append(Entity entity, const net::Call& call);

// {"data": …} or {"bytes": "…"}, with the serializer and manifest.
Read<Snapshot> read_snapshot(std::string_view json);
Read<Snapshot> read_raw_snapshot(std::string_view body);

// A number of events or of an epoch, as a whole.
inline constexpr int64_t kLastNumber = INT64_MAX;

}  // namespace tabella::journal

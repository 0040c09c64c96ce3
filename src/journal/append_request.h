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

// Whether the body is JSON that says what to store. Everything else is stored as it came, but for what curl
// calls -d if nobody tells it what it is.
bool is_described(const net::HttpRequest& request);

// {"events": [{"data": …}, …], "expected": …, …}
Read<Append> read_append(Entity entity, std::string_view json);
// One event, which is the body; all else is in the query.
Read<Append> read_raw_append(Entity entity, const net::Call& call);

// {"data": …} or {"bytes": "…"}, with the serializer and manifest.
Read<Snapshot> read_snapshot(std::string_view json);
Read<Snapshot> read_raw_snapshot(std::string_view body);

// A number of events or of an epoch, as a whole.
inline constexpr int64_t kLastNumber = INT64_MAX;

}  // namespace tabella::journal

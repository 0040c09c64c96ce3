// Events and snapshots as JSON, as /journal shows them. What is missing or empty is left out.
#pragma once

#include <string>
#include <string_view>

#include "journal/event.h"
#include "journal/order.h"
#include "journal/snapshots.h"

namespace tabella::journal {

// {"number":1,"type":"…","data":…, …} on one line.
void append_event_json(std::string& out, const Event& event);
// {"position":1,"pid":"…","number":1, …}
void append_event_json(std::string& out, const Placed& placed);

// {"number":1,"time":"…", …} with "data" or "bytes", or without either.
enum class WithPayload { no, yes };
void append_snapshot_json(std::string& out, const Snapshot& snapshot, WithPayload with_payload);

// About how many bytes an event has as JSON.
size_t json_size(const Event& event);

}  // namespace tabella::journal

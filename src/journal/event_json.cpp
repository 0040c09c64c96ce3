#include "journal/event_json.h"

#include <algorithm>
#include <charconv>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/time_text.h"

namespace tabella::journal {
namespace {

// Written by hand: this is what reading a long history costs most.
void append_number(std::string& out, uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
}

void append_text(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out.append(key);
  append_json_string(out, text);
}

void append_texts(std::string& out, std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  out.append(key);
  char before = '[';
  for (const auto& text : texts) {
    out.push_back(before);
    append_json_string(out, text);
    before = ',';
  }
  out.push_back(']');
}

// JSON that was stored goes out as it is, on one line: outside of its strings, where none can stand, line
// breaks are blanks.
void append_stored_json(std::string& out, std::string_view json) {
  const auto begin = out.size();
  out.append(json);
  const auto is_break = [](char c) { return c == '\n' || c == '\r'; };
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), is_break, ' ');
}

void append_payload(std::string& out, std::string_view payload, bool is_json) {
  if (is_json) {
    out.append(",\"data\":");
    append_stored_json(out, payload);
    return;
  }
  out.append(",\"bytes\":\"");
  append_base64(out, payload);
  out.push_back('"');
}

void append_serializer(std::string& out, int64_t serializer, std::string_view manifest) {
  if (serializer != kByteArraySerializer) out.append(",\"serializer\":").append(std::to_string(serializer));
  append_text(out, ",\"manifest\":", manifest);
}

// From "number" on, without the brace before it.
void append_members(std::string& out, const Event& event) {
  out.append("\"number\":");
  append_number(out, event.number());
  append_text(out, ",\"type\":", event.type());
  append_payload(out, event.payload(), event.is_json());
  if (const auto metadata = event.metadata(); !metadata.empty()) {
    out.append(",\"metadata\":");
    append_stored_json(out, metadata);
  }
  append_texts(out, ",\"tags\":", event.tags());
  append_text(out, ",\"id\":", event.id());
  if (const auto time = event.time()) append_text(out, ",\"time\":", time_text(*time));
  if (const auto expires = event.expires()) append_text(out, ",\"expires\":", time_text(*expires));
  if (const auto epoch = event.epoch(); epoch > 0) {
    out.append(",\"epoch\":");
    append_number(out, epoch);
  }
  append_text(out, ",\"writer\":", event.writer());
  append_serializer(out, event.serializer(), event.manifest());
  append_texts(out, ",\"confirmations\":", event.confirmations());
  out.push_back('}');
}

}  // namespace

void append_event_json(std::string& out, const Event& event) {
  out.push_back('{');
  append_members(out, event);
}

void append_event_json(std::string& out, const Placed& placed) {
  out.append("{\"position\":");
  append_number(out, placed.position);
  append_text(out, ",\"pid\":", placed.pid);
  out.push_back(',');
  append_members(out, placed.event);
}

void append_snapshot_json(std::string& out, const Snapshot& snapshot, WithPayload with_payload) {
  out.append("{\"number\":");
  append_number(out, snapshot.number);
  append_text(out, ",\"time\":", time_text(snapshot.time));
  if (with_payload == WithPayload::yes) append_payload(out, snapshot.payload, snapshot.is_json);
  append_serializer(out, snapshot.serializer, snapshot.manifest);
  out.push_back('}');
}

size_t json_size(const Event& event) { return event.row().bytes().size() * 4 / 3 + 200; }

}  // namespace tabella::journal

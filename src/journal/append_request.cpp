#include "journal/append_request.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/json_problem.h"
#include "base/options.h"
#include "base/text.h"

namespace tabella::journal {
namespace {

using Kind = JsonValue::Kind;
using Nothing = Read<void>;

constexpr size_t kMaxType = 256;
constexpr size_t kMaxEventId = 128;
constexpr size_t kMaxManifest = 1024;
constexpr size_t kMaxBatchId = 128;

template <class... Arguments>
std::unexpected<BadRequest> bad(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return std::unexpected(BadRequest{.message = fmt::format(format, std::forward<Arguments>(arguments)...)});
}

Read<JsonValue> parse_object(JsonDocument& document, std::string_view json, std::string_view example) {
  const auto value = document.parse(json);
  if (!value)
    return bad("the body cannot be read: {}; expected a JSON object: {}", json_problem(json), example);
  if (!value->is_object()) return bad("expected a JSON object: {}", example);
  return *value;
}

}  // namespace

Read<void> check_text(std::string_view name, std::string_view text, size_t most) {
  if (text.size() > most) return bad("{} has at most {} bytes", name, most);
  for (size_t i = 0; i < text.size(); ++i)
    if (control_length(text.substr(i)) > 0) return bad("{} has control characters in it", name);
  if (!is_valid_utf8(text)) return bad("{} is no UTF-8", name);
  return {};
}

namespace {

Read<std::string> read_text(std::string_view name, JsonValue value, size_t most) {
  if (value.kind() == Kind::null) return std::string();
  if (value.kind() != Kind::string) return bad("{}: expected a text", name);
  TABELLA_TRY(check_text(name, value.string(), most));
  return std::string(value.string());
}

Read<uint64_t> read_whole(std::string_view name, std::string_view text, uint64_t most) {
  uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || read != end || number > most)
    return bad("{}: expected a whole number from 0 to {}", name, most);
  return number;
}

Read<uint64_t> read_epoch(std::string_view text) { return read_whole("epoch", text, Journal::kHighestEpoch); }

Read<Expected> read_expected(std::string_view text) {
  if (text == "any") return Expected::any();
  if (text == "none") return Expected::none();
  const auto number = read_whole("expected", text, kLastNumber);
  if (!number)
    return bad("expected: 'any', 'none', or the number of the last event that there is, a whole one");
  return Expected::version(*number);
}

Read<std::chrono::seconds> read_time_to_live(std::string_view text) {
  const auto time = parse_duration(text);
  if (!time || *time < std::chrono::seconds{1} || *time > kForever)
    return bad("ttl: expected seconds, or a time as in 30d, from a second to {}", duration_text(kForever));
  return std::chrono::duration_cast<std::chrono::seconds>(*time);
}

Nothing add_tag(std::vector<std::string>& tags, std::string_view tag) {
  if (auto problem = problem_with_tag(tag); !problem.empty()) return bad("tags: {}", problem);
  if (tags.size() == kMostTags) return bad("tags: an event has at most {}", kMostTags);
  if (std::ranges::find(tags, tag) == tags.end()) tags.emplace_back(tag);
  return {};
}

Nothing read_tags(std::vector<std::string>& tags, JsonValue value) {
  if (value.kind() == Kind::null) return {};
  if (value.kind() != Kind::array) return bad("tags: expected a list of texts");
  for (JsonElements each(value); each.next();) {
    if (each.value().kind() != Kind::string) return bad("tags: expected a list of texts");
    TABELLA_TRY(add_tag(tags, each.value().string()));
  }
  return {};
}

// A payload that an object has by one of two names.
class PayloadReader {
 public:
  // False: the member is none of its own. `text` is the value as it was sent.
  Read<bool> take(std::string_view name, JsonValue value, std::string_view text) {
    if (name != "data" && name != "bytes") return false;
    if (std::exchange(found_, true)) return bad("expected either data or bytes, and once");
    is_json = name == "data";
    if (is_json) {
      append_compact_json(payload, text);
      return true;
    }
    auto bytes = value.kind() == Kind::string ? from_base64(value.string()) : std::nullopt;
    if (!bytes) return bad("bytes: expected base64, with its padding");
    payload = std::move(*bytes);
    return true;
  }
  Nothing check() const {
    if (!found_) return bad("expected data, any JSON, or bytes, in base64");
    return {};
  }

  std::string payload;
  bool is_json = false;

 private:
  bool found_ = false;
};

Nothing read_serializer(int64_t& into, JsonValue value) {
  constexpr int64_t kMost = INT32_MAX;
  if (value.kind() != Kind::integer || value.integer() < -kMost || value.integer() > kMost)
    return bad("serializer: expected the number by which Akka or Pekko know it; 4 for bytes");
  into = value.integer();
  return {};
}

size_t size_of(const NewEvent& event) {
  size_t size = event.payload.size() + event.type.size() + event.metadata.size() + event.id.size() +
                event.manifest.size();
  for (const auto& tag : event.tags) size += tag.size();
  return size;
}

Nothing check_size(size_t size, std::string_view what) {
  if (size <= kMaxEvent) return {};
  return std::unexpected(BadRequest{
      413, fmt::format("{} has {} bytes, and at most {} are possible: keep what is large elsewhere, and its "
                       "address here",
                       what, size, kMaxEvent)});
}

Nothing take_member(NewEvent& event, PayloadReader& payload, std::string_view name, JsonValue value,
                    std::string_view text) {
  TABELLA_ASSIGN(const bool taken, payload.take(name, value, text));
  if (taken) return {};
  if (name == "tags") return read_tags(event.tags, value);
  if (name == "serializer") return read_serializer(event.serializer, value);
  if (name == "metadata") {
    if (value.kind() != Kind::null) append_compact_json(event.metadata, text);
    return {};
  }
  const auto into = [&](std::string& member, size_t most) -> Nothing {
    TABELLA_ASSIGN(member, read_text(name, value, most));
    return {};
  };
  if (name == "type") return into(event.type, kMaxType);
  if (name == "id") return into(event.id, kMaxEventId);
  if (name == "manifest") return into(event.manifest, kMaxManifest);
  return bad("{} is not known here", printable(name));
}

Read<NewEvent> read_event(JsonValue value, std::string_view text) {
  if (!value.is_object()) return bad("expected an object, as in {{\"data\": {{}}}}");
  NewEvent event;
  PayloadReader payload;
  JsonTexts texts(text);
  for (JsonElements members(value); members.next() && texts.next();)
    TABELLA_TRY(take_member(event, payload, members.key(), members.value(), texts.text()));
  TABELLA_TRY(payload.check());
  event.payload = std::move(payload.payload);
  event.is_json = payload.is_json;
  TABELLA_TRY(check_size(size_of(event), "it"));
  return event;
}

Read<std::vector<NewEvent>> read_events(JsonValue value, std::string_view text) {
  if (value.kind() != Kind::array) return bad("events: expected a list");
  std::vector<NewEvent> events;
  size_t size = 0;
  JsonTexts texts(text);
  for (JsonElements each(value); each.next() && texts.next();) {
    if (events.size() == Journal::kMostEvents)
      return std::unexpected(
          BadRequest{413, fmt::format("events: at most {} to an append", Journal::kMostEvents)});
    auto event = read_event(each.value(), texts.text());
    if (!event)
      return std::unexpected(BadRequest{event.error().status,
                                        fmt::format("events[{}]: {}", events.size(), event.error().message)});
    size += size_of(*event);
    if (size > Journal::kMostBytes)
      return std::unexpected(
          BadRequest{413, fmt::format("events: at most {} MB to an append", Journal::kMostBytes >> 20)});
    events.push_back(std::move(*event));
  }
  if (events.empty()) return bad("events: expected one at least");
  return events;
}

Nothing take_member(Append& append, std::string_view name, JsonValue value, std::string_view text) {
  if (name == "events") {
    TABELLA_ASSIGN(append.events, read_events(value, text));
  } else if (name == "expected") {
    if (value.kind() != Kind::string && value.kind() != Kind::integer)
      return bad("expected: 'any', 'none', or a whole number, written as 1 and not as 1.0");
    TABELLA_ASSIGN(append.expected, read_expected(value.kind() == Kind::string ? std::string(value.string())
                                                                               : value.number_text()));
  } else if (name == "epoch") {
    // As text: a number that is too large would be the largest there is.
    TABELLA_ASSIGN(append.epoch, read_epoch(value.kind() == Kind::integer ? value.number_text() : ""));
  } else if (name == "batch") {
    TABELLA_ASSIGN(append.batch_id, read_text(name, value, kMaxBatchId));
  } else if (name == "ttl") {
    if (!value.is_number() && value.kind() != Kind::string) return bad("ttl: expected seconds");
    TABELLA_ASSIGN(append.time_to_live,
                   read_time_to_live(value.is_number() ? value.number_text() : std::string(value.string())));
  } else {
    return bad("{} is not known here", printable(name));
  }
  return {};
}

std::string media_type(const net::HttpRequest& request) {
  const auto header = request.header("content-type");
  return lower(trim(header.substr(0, header.find(';'))));
}

// Stored as bytes, an append that somebody sent as text would lose its condition, and nobody would know.
Nothing check_is_no_append(const net::HttpRequest& request) {
  if (media_type(request) != "text/plain") return {};
  JsonDocument document;
  const auto body = document.parse(request.body);
  if (!body || !body->find("events")) return {};
  return bad(
      "this is JSON with events, sent as text/plain: send it as application/json, or as "
      "application/octet-stream if these bytes are the event");
}

}  // namespace

bool is_described(const net::HttpRequest& request) {
  const auto type = media_type(request);
  return type.empty() || type == "application/json" || type == "text/json" || type.ends_with("+json") ||
         type == "application/x-www-form-urlencoded";
}

Read<Append> read_append(Entity entity, const net::Call& call) {
  if (!call.target.query.empty())
    return bad("?{}= is for a body that is one event's bytes: with JSON all is in the body, as in {}",
               printable(call.target.query.begin()->first),
               R"({"events": [{"type": "Opened", "data": {}}], "expected": 7})");
  const auto json = call.request.body;
  JsonDocument document;
  TABELLA_ASSIGN(
      const auto body,
      parse_object(document, json, R"({"events": [{"type": "Opened", "data": {"owner": "ann"}}]})"));
  Append append{.entity = std::move(entity)};
  JsonTexts texts(json);
  for (JsonElements members(body); members.next() && texts.next();)
    if (members.value().kind() != Kind::null)
      TABELLA_TRY(take_member(append, members.key(), members.value(), texts.text()));
  if (append.events.empty()) return bad("events is missing");
  return append;
}

Read<Append> read_raw_append(Entity entity, const net::Call& call) {
  Append append{.entity = std::move(entity)};
  NewEvent event;
  event.payload = call.request.body;
  event.type = call.text("type");
  event.id = call.text("id");
  TABELLA_TRY(check_text("type", event.type, kMaxType));
  TABELLA_TRY(check_text("id", event.id, kMaxEventId));
  if (call.target.has("tag"))
    for (const auto tag : split(call.text("tag"), ',')) TABELLA_TRY(add_tag(event.tags, trim(tag)));
  TABELLA_TRY(check_size(size_of(event), "the event"));
  TABELLA_TRY(check_is_no_append(call.request));
  append.events.push_back(std::move(event));
  append.batch_id = call.text("batch");
  TABELLA_TRY(check_text("batch", append.batch_id, kMaxBatchId));
  TABELLA_ASSIGN(append.expected, read_expected(call.text("expected", "any")));
  if (call.target.has("epoch")) {
    TABELLA_ASSIGN(append.epoch, read_epoch(call.text("epoch")));
  }
  if (call.target.has("ttl")) {
    TABELLA_ASSIGN(append.time_to_live, read_time_to_live(call.text("ttl")));
  }
  return append;
}

Read<Snapshot> read_snapshot(std::string_view json) {
  JsonDocument document;
  TABELLA_ASSIGN(const auto body, parse_object(document, json, R"({"data": {"balance": 120}})"));
  Snapshot snapshot;
  PayloadReader payload;
  JsonTexts texts(json);
  for (JsonElements members(body); members.next() && texts.next();) {
    TABELLA_ASSIGN(const bool taken, payload.take(members.key(), members.value(), texts.text()));
    if (taken) continue;
    if (members.key() == "serializer") {
      TABELLA_TRY(read_serializer(snapshot.serializer, members.value()));
    } else if (members.key() == "manifest") {
      TABELLA_ASSIGN(snapshot.manifest, read_text("manifest", members.value(), kMaxManifest));
    } else {
      return bad("{} is not known here", printable(members.key()));
    }
  }
  TABELLA_TRY(payload.check());
  snapshot.payload = std::move(payload.payload);
  snapshot.is_json = payload.is_json;
  TABELLA_TRY(check_size(snapshot.payload.size(), "the snapshot"));
  return snapshot;
}

Read<Snapshot> read_raw_snapshot(std::string_view body) {
  TABELLA_TRY(check_size(body.size(), "the snapshot"));
  Snapshot snapshot;
  snapshot.payload = body;
  return snapshot;
}

}  // namespace tabella::journal

// The doors of other systems: PagerDuty's Events API v2, and the webhooks of Alertmanager and Grafana. A
// routing key, which names a policy, is their credential.
#include <algorithm>
#include <array>
#include <ranges>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/text.h"
#include "base/utf8.h"
#include "manhunt/api.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr size_t kRoutingKeyLength = 32;
constexpr size_t kMostDedupKey = 255;
constexpr size_t kMostSummary = 1024;     // characters
constexpr size_t kMostShortValue = 4096;  // bytes, of an event that is too long for a search
constexpr size_t kMostShownAlerts = 10;
constexpr size_t kMostEvent = 512 * 1024;  // bytes
constexpr std::array<std::string_view, 4> kSeverities{"critical", "error", "warning", "info"};

struct Event {
  std::string routing_key;
  std::string action;
  std::string dedup_key;
  std::string metadata = "{}";
  bool low_urgency = false;
  std::vector<std::string> errors;  // as PagerDuty words them
};

void answer_invalid(net::Call& call, const std::vector<std::string>& errors) {
  JsonObjectWriter object(call.answer_json(400));
  object.string("status", "invalid event");
  object.string("message", "Event object is invalid");
  JsonArrayWriter all(object.key("errors"));
  for (const auto& error : errors) append_json_string(all.element(), error);
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Its own members flat, so that templates reach them: {{summary}}, {{custom_details.firing}}. Without the
// long ones where it would be too long for a search.
std::string metadata_of_event(JsonValue json, bool in_full) {
  constexpr std::array<std::string_view, 6> kShort{"summary",   "source", "severity",
                                                   "component", "group",  "class"};
  std::string text;
  JsonObjectWriter metadata(text);
  const auto payload = json.find("payload");
  if (payload && payload->is_object())
    for (JsonElements each(*payload); each.next();) {
      if (in_full)
        append_json(metadata.key(each.key()), each.value());
      else if (std::ranges::find(kShort, each.key()) != kShort.end() &&
               each.value().kind() == JsonValue::Kind::string)
        metadata.string(each.key(), utf8_front(each.value().string(), kMostShortValue));
    }
  if (!in_full) metadata.boolean("truncated", true);
  if (in_full)
    for (const auto* name : {"client", "client_url", "links", "images"})
      if (const auto value = json.find(name)) append_json(metadata.key(name), *value);
  return text;
}

void read_payload(JsonValue json, Event& event) {
  const auto payload = json.find("payload");
  const bool needed = event.action == "trigger";
  const auto member = [&](std::string_view name) {
    return payload && payload->is_object() ? payload->text(name) : std::string_view();
  };
  if (needed)
    for (const auto* name : {"summary", "source", "severity"})
      if (member(name).empty()) event.errors.push_back(fmt::format("'payload.{}' is missing or blank", name));
  const auto severity = member("severity");
  const bool known = std::ranges::find(kSeverities, severity) != kSeverities.end();
  if (needed && !severity.empty() && !known)
    event.errors.emplace_back(
        "'payload.severity' is invalid (must be one of the following: 'critical', 'warning', 'error' or "
        "'info')");
  if (characters(member("summary")) > kMostSummary)
    event.errors.push_back(
        fmt::format("'payload.summary' is too long (maximum is {} characters)", kMostSummary));
  event.low_urgency = severity == "warning" || severity == "info";
  event.metadata = metadata_of_event(json, true);
  if (event.metadata.size() > kMostMetadata) event.metadata = metadata_of_event(json, false);
}

Event read_event(JsonValue json) {
  Event event{.routing_key = std::string(json.text("routing_key")),
              .action = std::string(json.text("event_action")),
              .dedup_key = std::string(json.text("dedup_key"))};
  if (event.routing_key.empty())
    event.errors.emplace_back("'routing_key' cannot be blank");
  else if (event.routing_key.size() != kRoutingKeyLength)
    event.errors.emplace_back("Length of 'routing_key' is incorrect (should be 32 characters)");
  if (event.action.empty())
    event.errors.emplace_back("'event_action' is missing or blank");
  else if (event.action != "trigger" && event.action != "acknowledge" && event.action != "resolve")
    event.errors.emplace_back(
        "'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')");
  if (event.action != "trigger" && event.dedup_key.empty())
    event.errors.emplace_back("'dedup_key' is missing or blank");
  if (const auto key = json.find("dedup_key");
      key && key->kind() != JsonValue::Kind::string && key->kind() != JsonValue::Kind::null)
    event.errors.emplace_back("'dedup_key' is invalid (must be a string)");
  if (characters(event.dedup_key) > kMostDedupKey)
    event.errors.push_back(fmt::format("'dedup_key' is too long (maximum is {} characters)", kMostDedupKey));
  read_payload(json, event);
  return event;
}

void answer_accepted(net::Call& call, std::string_view dedup_key) {
  JsonObjectWriter object(call.answer_json(202));
  object.string("status", "success");
  object.string("message", "Event processed");
  if (!dedup_key.empty()) object.string("dedup_key", dedup_key);
}

// What is wrong with it is said as PagerDuty says it.
void refuse_event(net::Call& call, const store::Error& error) {
  if (error.code == store::ErrorCode::validation) return answer_invalid(call, {error.message});
  house::refuse(call, error);
}

std::vector<JsonValue> alerts_of(JsonValue group) {
  std::vector<JsonValue> alerts;
  if (const auto list = group.find("alerts"); list && list->kind() == JsonValue::Kind::array)
    for (JsonElements each(*list); each.next();)
      if (each.value().is_object()) alerts.push_back(each.value());
  return alerts;
}

std::string_view text_within(JsonValue object, const char* member, std::string_view name) {
  const auto found = object.find(member);
  return found && found->is_object() ? found->text(name) : std::string_view();
}

// What is common to all alerts of a group, or what the first that fires says, and how many others there are.
std::string summary_of_alerts(JsonValue group) {
  const auto shown = [](std::string_view text) { return std::string(utf8_front(text, kMostSummary)); };
  for (const auto text : {text_within(group, "commonAnnotations", "summary"), group.text("title"),
                          text_within(group, "commonAnnotations", "description")})
    if (!text.empty()) return shown(text);
  const auto alerts = alerts_of(group);
  const auto firing =
      std::ranges::find(alerts, "firing", [](JsonValue alert) { return alert.text("status"); });
  if (firing != alerts.end())
    for (const auto text :
         {text_within(*firing, "annotations", "summary"), text_within(*firing, "annotations", "description"),
          text_within(*firing, "labels", "alertname")})
      if (!text.empty())
        return alerts.size() == 1 ? shown(text)
                                  : fmt::format("{} (+{} more)", shown(text), alerts.size() - 1);
  for (const auto text :
       {text_within(group, "commonLabels", "alertname"), text_within(group, "groupLabels", "alertname")})
    if (!text.empty()) return shown(text);
  return "An alert is firing";
}

std::string metadata_of_alerts(JsonValue group, bool in_full) {
  std::string json;
  JsonObjectWriter metadata(json);
  metadata.string("summary", summary_of_alerts(group));
  const auto alerts = alerts_of(group);
  metadata.number("count", static_cast<int64_t>(alerts.size()));
  for (const auto* name : {"receiver", "externalURL", "groupKey"})
    if (const auto text = group.text(name); !text.empty())
      metadata.string(name, utf8_front(text, kMostShortValue));
  if (!in_full) {
    metadata.boolean("truncated", true);
    return json;
  }
  for (const auto& [from, to] :
       {std::pair{"commonLabels", "labels"}, std::pair{"commonAnnotations", "annotations"}})
    if (const auto found = group.find(from); found && found->is_object())
      append_json(metadata.key(to), *found);
  JsonArrayWriter shown(metadata.key("alerts"));
  for (const auto alert : alerts | std::views::take(kMostShownAlerts)) {
    JsonObjectWriter one(shown.element());
    one.string("status", alert.text("status"));
    for (const auto* name : {"labels", "annotations"})
      if (const auto found = alert.find(name); found && found->is_object())
        append_json(one.key(name), *found);
  }
  return json;
}

std::string metadata_of_alerts(JsonValue group) {
  auto metadata = metadata_of_alerts(group, true);
  return metadata.size() > kMostMetadata ? metadata_of_alerts(group, false) : metadata;
}

bool is_low_urgency(JsonValue group) {
  const auto labels = group.find("commonLabels");
  const auto severity = labels && labels->is_object() ? labels->text("severity") : std::string_view();
  return severity == "warning" || severity == "info";
}

}  // namespace

void Api::add_door_routes(Routes& routes) {
  auto events = open_route("POST", "/v2/enqueue", "PagerDuty's Events API v2: trigger, acknowledge, resolve",
                           "application/json");
  events.body =
      R"({"routing_key": "…", "event_action": "trigger", "dedup_key": "disk db1", "payload": {"summary": "Disk full", "source": "db1", "severity": "critical"}})";
  events.max_body = kMostEvent;
  routes.add(std::move(events), &Api::enqueue);
  auto changes = open_route("POST", "/v2/change/enqueue",
                            "PagerDuty's change events, which search for nobody", "application/json");
  changes.body = R"({"routing_key": "…", "payload": {"summary": "Deployed", "source": "ci"}})";
  changes.max_body = kMostEvent;
  routes.add(std::move(changes), &Api::enqueue_change);
  for (const auto* method : {"POST", "PUT"}) {
    auto alerts = open_route(method, "/manhunt/alertmanager/{routing_key}",
                             "The webhook of Prometheus Alertmanager, and Grafana's", "application/json");
    alerts.body =
        R"({"status": "firing", "groupKey": "…", "commonLabels": {}, "commonAnnotations": {}, "alerts": []})";
    alerts.max_body = size_t{4} << 20;
    routes.add(std::move(alerts), &Api::alertmanager);
  }
}

awaitable<void> Api::enqueue(Call& call) {
  JsonDocument document;
  const auto json = document.parse(call.request.body);
  if (!json || !json->is_object()) {
    JsonObjectWriter object(call.answer_json(400));
    object.string("status", "Unrecognized object");
    object.string("message", "Event object format is unrecognized");
    JsonArrayWriter errors(object.key("errors"));
    append_json_string(errors.element(), "JSON parse error");
    co_return;
  }
  auto event = read_event(*json);
  if (!event.errors.empty()) co_return answer_invalid(call, event.errors);
  const auto routed = co_await parts_.domains.routed(event.routing_key);
  if (!routed) co_return refuse_event(call, routed.error());
  if (!*routed) co_return answer_invalid(call, {"Invalid routing key"});
  const auto list = policy_list((*routed)->domain, (*routed)->policy);
  if (event.action == "trigger") {
    if (event.dedup_key.empty()) event.dedup_key = make_uuid();
    const auto opened = co_await parts_.searches.open({.domain = (*routed)->domain,
                                                       .policy = (*routed)->policy,
                                                       .metadata = std::move(event.metadata),
                                                       .key = event.dedup_key,
                                                       .low_urgency = event.low_urgency});
    if (!opened) co_return refuse_event(call, opened.error());
  } else if (event.action == "resolve") {
    const auto resolved = co_await parts_.searches.resolve(list, event.dedup_key, "event");
    if (!resolved) co_return refuse_event(call, resolved.error());
  } else {
    const auto search = co_await parts_.searches.find_by_key(list, event.dedup_key);
    if (!search) co_return refuse_event(call, search.error());
    if (*search) {
      const auto ended =
          co_await parts_.searches.answer((*search)->id, {.how = "event", .by = "acknowledge"});
      if (!ended) co_return refuse_event(call, ended.error());
    }
  }
  answer_accepted(call, event.dedup_key);
}

// Nobody is to be found for one; the routing key is checked, so that a mistake shows.
awaitable<void> Api::enqueue_change(Call& call) {
  JsonDocument document;
  const auto json = document.parse(call.request.body);
  const auto key = json && json->is_object() ? std::string(json->text("routing_key")) : std::string();
  if (key.size() != kRoutingKeyLength)
    co_return answer_invalid(call, {"Length of 'routing_key' is incorrect (should be 32 characters)"});
  const auto routed = co_await parts_.domains.routed(key);
  if (!routed) co_return house::refuse(call, routed.error());
  if (!*routed) co_return answer_invalid(call, {"Invalid routing key"});
  answer_accepted(call, "");
}

// One search for each group, as Alertmanager groups them: it is open while any alert of it fires.
awaitable<void> Api::alertmanager(Call& call) {
  const auto routed = co_await parts_.domains.routed(call.path("routing_key"));
  if (!routed) co_return house::refuse(call, routed.error());
  if (!*routed) co_return call.refuse(404, "no policy has this routing key");
  JsonDocument document;
  const auto json = document.parse(call.request.body);
  const auto status = json && json->is_object() ? json->text("status") : std::string_view();
  if (status != "firing" && status != "resolved")
    co_return call.refuse(
        400, "expected what Alertmanager's webhook sends: an object with status, groupKey and alerts");
  const auto group = json->text("groupKey");
  const auto key = "alerts " + to_hex(sha256(group.empty() ? summary_of_alerts(*json) : std::string(group)));
  if (status == "resolved") {
    const auto resolved = co_await parts_.searches.resolve(policy_list((*routed)->domain, (*routed)->policy),
                                                           key, "alertmanager");
    if (!resolved) co_return house::refuse(call, resolved.error());
  } else {
    const auto opened = co_await parts_.searches.open({.domain = (*routed)->domain,
                                                       .policy = (*routed)->policy,
                                                       .metadata = metadata_of_alerts(*json),
                                                       .key = key,
                                                       .low_urgency = is_low_urgency(*json)});
    if (!opened) co_return house::refuse(call, opened.error());
  }
  JsonObjectWriter(call.answer_json()).string("status", "success");
}

}  // namespace tabella::manhunt

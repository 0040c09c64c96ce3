// Our own API, under /api/v3.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/json.h"
#include "mail/api.h"
#include "mail/shown.h"
#include "mail/summary.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {

constexpr size_t kPage = 50;
constexpr size_t kLargestPage = 1000;
constexpr size_t kMostTags = 50;
constexpr size_t kLongestTag = 100;
constexpr std::chrono::minutes kLongDelete{10};  // there may be very many

std::optional<std::vector<std::string>> read_tags(JsonValue json) {
  if (json.kind() != JsonValue::Kind::array) return std::nullopt;
  std::vector<std::string> tags;
  for (JsonElements elements(json); elements.next();) {
    const auto value = elements.value();
    if (value.kind() != JsonValue::Kind::string || value.string().empty() ||
        value.string().size() > kLongestTag || tags.size() >= kMostTags)
      return std::nullopt;
    tags.emplace_back(value.string());
  }
  return tags;
}

void append_whole_message(std::string& out, const Message& message, const std::string& base) {
  const auto parsed = mime::parse(message.raw);
  JsonObjectWriter object(out);
  write_summary(object, message, parsed);
  constexpr int64_t kLastDate = 9'000'000'000;  // what fits into nanoseconds
  if (parsed.date && *parsed.date >= 0 && *parsed.date < kLastDate)
    object.string("date", time_text(*parsed.date * 1'000'000'000));
  object.string("text", parsed.text() ? parsed.text()->text() : "");
  object.string("html", parsed.html() ? parsed.html()->text() : "");
  {
    JsonArrayWriter headers(object.key("headers"));
    for (const auto& header : parsed.headers) {
      JsonObjectWriter one(headers.element());
      one.string("name", header.name);
      one.string("value", header.value);
    }
  }
  {
    JsonArrayWriter parts(object.key("parts"));
    for (size_t i = 0; i < parsed.parts.size(); ++i) {
      const auto& part = parsed.parts[i];
      JsonObjectWriter one(parts.element());
      one.number("index", static_cast<int64_t>(i));
      one.string("content_type", part.content_type);
      one.string("filename", part.filename);
      one.string("content_id", part.content_id);
      one.string("disposition", part.disposition);
      one.boolean("attachment", part.is_attachment());
      one.number("size", static_cast<int64_t>(part.content().size()));
      one.string("url", fmt::format("{}/parts/{}", base, i));
    }
  }
  object.boolean("cut_short", parsed.cut_short || !message.whole);
  object.string("raw", base + "/raw");
}

void show_html(net::HttpResponse& response, const Message& message) {
  const auto parsed = mime::parse(message.raw);
  if (!parsed.html()) return answer_error(response, 404, "the message has no HTML");
  response.content_type = "text/html; charset=utf-8";
  add_sandbox(response);
  response.body = shown_html(parsed);
}

void show_text(net::HttpResponse& response, const Message& message) {
  const auto parsed = mime::parse(message.raw);
  response.content_type = "text/plain; charset=utf-8";
  add_sandbox(response);
  response.body = shown_text(parsed);
}

void show_part(net::HttpResponse& response, const Message& message, const std::string& text) {
  const auto parsed = mime::parse(message.raw);
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number >= parsed.parts.size())
    return answer_error(response, 404, "the message has no such part");
  const auto& part = parsed.parts[number];
  response.add_header("Content-Type", download_type(part.content_type, part.charset));
  const auto name = part.filename.empty() ? fmt::format("part-{}", number) : part.filename;
  response.add_header("Content-Disposition",
                      fmt::format("{}; filename=\"{}\"; filename*=UTF-8''{}",
                                  is_picture(part.content_type) ? "inline" : "attachment", header_text(name),
                                  net::percent_encode(name)));
  add_sandbox(response);
  response.body = part.content();
}

}  // namespace

void Api::add_v3_routes(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/api/v3/messages",
              .scope = "mail:read",
              .summary = "A page of messages, newest first",
              .query = {{"query", "what they must match"},
                        {"limit", "how many, at most 1000"},
                        {"cursor", "the next of the page before"},
                        {"start", "how many to leave out"}}},
             &Api::v3_list);
  routes.add({.method = "DELETE",
              .path = "/api/v3/messages",
              .scope = "mail:write",
              .summary = "Deletes the messages that match",
              .query = {{"query", "what they must match"}}},
             &Api::v3_delete_found);
  routes.add({.method = "GET",
              .path = "/api/v3/messages/{id}",
              .scope = "mail:read",
              .summary = "One message, taken apart"},
             &Api::v3_get);
  routes.add({.method = "PUT",
              .path = "/api/v3/messages/{id}",
              .scope = "mail:write",
              .summary = "Marks a message as read, or tags it",
              .body = R"({"read": true, "tags": ["welcome"]})"},
             &Api::v3_update);
  routes.add({.method = "DELETE",
              .path = "/api/v3/messages/{id}",
              .scope = "mail:write",
              .summary = "Deletes one message"},
             &Api::v3_delete);
  routes.add({.method = "GET",
              .path = "/api/v3/messages/{id}/raw",
              .scope = "mail:read",
              .summary = "The source of a message",
              .answer = "message/rfc822"},
             &Api::v3_raw);
  routes.add({.method = "GET",
              .path = "/api/v3/messages/{id}/html",
              .scope = "mail:read",
              .summary = "Its HTML, made safe to show",
              .answer = "text/html"},
             &Api::v3_html);
  routes.add({.method = "GET",
              .path = "/api/v3/messages/{id}/text",
              .scope = "mail:read",
              .summary = "Its text",
              .answer = "text/plain"},
             &Api::v3_text);
  routes.add({.method = "GET",
              .path = "/api/v3/messages/{id}/parts/{part}",
              .scope = "mail:read",
              .summary = "One part of it",
              .answer = "application/octet-stream"},
             &Api::v3_part);
  routes.add({.method = "POST",
              .path = "/api/v3/messages/{id}/release",
              .scope = "mail:write",
              .summary = "Sends a message on to a real server",
              .body = R"({"Host": "smtp.example.com", "Port": "25", "Email": "ann@example.com"})"},
             &Api::v1_release);
  routes.add({.method = "GET",
              .path = "/api/v3/inboxes",
              .scope = "mail:read",
              .summary = "Who has mail, and how much"},
             &Api::v3_inboxes);
  routes.add({.method = "GET",
              .path = "/api/v3/inboxes/{inbox}/messages",
              .scope = "mail:read",
              .summary = "The messages to one address",
              .query = {{"query", "what they must match"},
                        {"limit", "how many, at most 1000"},
                        {"cursor", "the next of the page before"},
                        {"start", "how many to leave out"}}},
             &Api::v3_inbox);
  routes.add({.method = "DELETE",
              .path = "/api/v3/inboxes/{inbox}/messages",
              .scope = "mail:write",
              .summary = "Deletes the messages to one address"},
             &Api::v3_inbox_delete);
  routes.add(
      {.method = "GET", .path = "/api/v3/tags", .scope = "mail:read", .summary = "The tags that are in use"},
      &Api::v3_tags);
  routes.add({.method = "GET",
              .path = "/api/v3/stats",
              .scope = "mail:read",
              .summary = "How many messages there are"},
             &Api::v3_stats);
  routes.add({.method = "GET",
              .path = "/api/v3/webhooks",
              .scope = "mail:write",
              .summary = "Who is told of messages; their URLs may hold secrets"},
             &Api::v3_webhooks);
  routes.add(
      {.method = "POST",
       .path = "/api/v3/webhooks",
       .scope = "mail:write",
       .summary = "Tells a URL of messages from now on",
       .body = R"({"url": "https://example.com/hook", "secret": "whsec_…", "query": "to:ann@example.com"})"},
      &Api::v3_webhook_add);
  routes.add({.method = "DELETE",
              .path = "/api/v3/webhooks/{id}",
              .scope = "mail:write",
              .summary = "Tells it no more"},
             &Api::v3_webhook_delete);
  routes.add({.method = "GET",
              .path = "/api/v3/scenario",
              .scope = "mail:read",
              .summary = "The scenario that is playing"},
             &Api::v3_scenario_get);
  routes.add({.method = "PUT",
              .path = "/api/v3/scenario",
              .scope = "mail:write",
              .summary = "Plays a scenario of SMTP answers",
              .body = R"({"steps": []})"},
             &Api::v3_scenario_put);
  routes.add(
      {.method = "DELETE", .path = "/api/v3/scenario", .scope = "mail:write", .summary = "Ends the scenario"},
      &Api::v3_scenario_delete);
}

awaitable<void> Api::list_found(Call& call, Filter filter) {
  const auto limit = std::min(number_in(call.target, "limit", kPage), kLargestPage);
  const auto start = number_in(call.target, "start", 0);
  // Newest first: the next page is what is older than the last message of this one.
  if (const auto cursor = id_of_spelling(call.target.get("cursor")); !cursor.empty()) {
    if (!created_of(cursor)) co_return call.refuse(400, "cursor is the next of an answer before");
    filter.until = filter.until.empty() ? cursor : std::min(filter.until, cursor);
  }
  auto page = co_await mail_.find(filter, start, limit, Load::head, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  std::string summaries;
  const auto show = [&](Message& message) -> store::Async<void> {
    if (!summaries.empty()) summaries.push_back(',');
    append_summary_json(summaries, message);
    co_return store::Result<void>();
  };
  const auto shown = co_await each_message(*page, show);
  if (!shown) co_return house::refuse(call, shown.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  object.number("total", static_cast<int64_t>(page->total));
  object.boolean("exact", true);  // it was not always so
  object.key("messages").append("[").append(summaries).append("]");
  if (page->ids.size() == limit)
    object.string("next", url_spelling(page->ids.back()));
  else
    object.key("next").append("null");
}

awaitable<void> Api::v3_list(Call& call) {
  auto filter = parse_query(call.target.get("query"), mail_.clock().now());
  if (!filter) co_return call.refuse(400, filter.error());
  co_await list_found(call, std::move(*filter));
}

awaitable<void> Api::v3_get(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = kJson;
  const auto base =
      fmt::format("{}/api/v3/messages/{}", web_path_, net::percent_encode(url_spelling(message->id)));
  co_await mail_.aside(message->size, [&] { append_whole_message(call.response.body, *message, base); });
}

awaitable<void> Api::v3_update(Call& call) {
  JsonDocument document;
  const auto json = document.parse(call.request.body);
  const bool object = json && json->kind() == JsonValue::Kind::object;
  const auto read = object ? json->find("read") : std::nullopt;
  const auto tags = object ? json->find("tags") : std::nullopt;
  if ((!read && !tags) || (read && read->kind() != JsonValue::Kind::boolean))
    co_return call.refuse(400, "expected {\"read\": true} or {\"tags\": [\"one\", \"two\"]}, or both");
  const auto& id = call.path("id");
  bool there = true;
  if (tags) {
    auto names = read_tags(*tags);
    if (!names)
      co_return call.refuse(
          400, fmt::format("tags is a list of at most {} texts of up to {} bytes", kMostTags, kLongestTag));
    const auto set = co_await mail_.set_tags(id, std::move(*names));
    if (!set) co_return house::refuse(call, set.error());
    there = *set;
  }
  if (there && read) {
    const auto set = co_await mail_.set_read(id, read->boolean());
    if (!set) co_return house::refuse(call, set.error());
    there = *set;
  }
  if (!there) co_return call.refuse(404, "there is no such message");
  co_await v3_get(call);
}

awaitable<void> Api::v3_delete(Call& call) {
  const auto removed = co_await mail_.remove(call.path("id"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return call.refuse(404, "there is no such message");
  call.response.status = 204;
}

awaitable<void> Api::v3_delete_found(Call& call) {
  const auto query = call.target.get("query");
  auto filter = parse_query(query, mail_.clock().now());
  if (!filter) co_return call.refuse(400, filter.error());
  if (filter->empty()) co_return call.refuse(400, "query says which; to delete all: DELETE /api/v1/messages");
  const auto removed = co_await mail_.remove_found(std::move(*filter), deadline_of(call.target, kLongDelete));
  if (!removed) co_return house::refuse(call, removed.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  object.number("deleted", static_cast<int64_t>(*removed));
}

awaitable<void> Api::v3_raw(Call& call) {
  auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = "message/rfc822";
  call.response.add_header("Content-Disposition", "attachment; filename=\"message.eml\"");
  add_sandbox(call.response);
  call.response.body = std::move(message->raw);
}

awaitable<void> Api::v3_html(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  co_await mail_.aside(message->size, [&] { show_html(call.response, *message); });
}

awaitable<void> Api::v3_text(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  co_await mail_.aside(message->size, [&] { show_text(call.response, *message); });
}

awaitable<void> Api::v3_part(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  co_await mail_.aside(message->size, [&] { show_part(call.response, *message, call.path("part")); });
}

awaitable<void> Api::v3_inboxes(Call& call) {
  const auto inboxes = co_await mail_.inboxes(deadline_of(call.target));
  if (!inboxes) co_return house::refuse(call, inboxes.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  JsonArrayWriter array(object.key("inboxes"));
  for (const auto& [name, count] : *inboxes) {
    JsonObjectWriter one(array.element());
    one.string("name", name);
    one.number("messages", static_cast<int64_t>(count));
  }
}

awaitable<void> Api::v3_inbox(Call& call) {
  auto filter = parse_query(call.target.get("query"), mail_.clock().now());
  if (!filter) co_return call.refuse(400, filter.error());
  filter->keys.push_back({.word = inbox_key(call.path("inbox"))});
  co_await list_found(call, std::move(*filter));
}

awaitable<void> Api::v3_inbox_delete(Call& call) {
  Filter filter;
  filter.keys.push_back({.word = inbox_key(call.path("inbox"))});
  const auto removed = co_await mail_.remove_found(std::move(filter), deadline_of(call.target, kLongDelete));
  if (!removed) co_return house::refuse(call, removed.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  object.number("deleted", static_cast<int64_t>(*removed));
}

awaitable<void> Api::v3_tags(Call& call) {
  const auto labels = co_await mail_.index().labels(mail_.now() / 1'000'000'000);
  if (!labels) co_return house::refuse(call, labels.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  JsonArrayWriter tags(object.key("tags"));
  const auto prefix = tag_label("");
  for (const auto& label : *labels)
    if (label.starts_with(prefix)) append_json_string(tags.element(), label.substr(prefix.size()));
}

awaitable<void> Api::v3_stats(Call& call) {
  const auto total = co_await mail_.count(deadline_of(call.target));
  if (!total) co_return house::refuse(call, total.error());
  Filter unread;
  unread.labels.push_back({.word = kReadLabel, .negated = true});
  const auto page = co_await mail_.find(unread, 0, 0, Load::keys, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  object.number("messages", static_cast<int64_t>(*total));
  object.number("unread", static_cast<int64_t>(page->total));
}

awaitable<void> Api::v3_webhooks(Call& call) {
  const auto hooks = co_await webhooks_.all();
  if (!hooks) co_return house::refuse(call, hooks.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  JsonArrayWriter array(object.key("webhooks"));
  for (const auto& hook : *hooks) {
    JsonObjectWriter one(array.element());
    one.string("id", hook.id);
    one.string("url", hook.url);
    one.string("query", hook.query);
    one.boolean("signed", !hook.secret.empty());
  }
}

awaitable<void> Api::v3_webhook_add(Call& call) {
  JsonDocument document;
  const auto json = document.parse(call.request.body);
  const auto text = [&](std::string_view name) {
    return json ? std::string(json->text(name)) : std::string();
  };
  webhook::Hook hook{.url = text("url"), .secret = text("secret"), .query = text("query")};
  if (const auto url = net::parse_url(hook.url); !url)
    co_return call.refuse(400, fmt::format("expected {{\"url\": \"https://…\"}}: {}", url.error()));
  if (const auto filter = parse_query(hook.query, mail_.clock().now()); !filter)
    co_return call.refuse(400, "query: " + filter.error());
  const auto added = co_await webhooks_.add(std::move(hook));
  if (!added && added.error().code == store::ErrorCode::access_denied)
    co_return call.refuse(403, added.error().message);
  if (!added) co_return house::refuse(call, added.error());
  call.response.status = 201;
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  object.string("id", added->id);
  object.string("url", added->url);
  object.string("query", added->query);
  object.boolean("signed", !added->secret.empty());
}

awaitable<void> Api::v3_webhook_delete(Call& call) {
  const auto removed = co_await webhooks_.remove(call.path("id"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return call.refuse(404, "there is no such webhook that was added here");
  call.response.status = 204;
}

awaitable<void> Api::v3_scenario_get(Call& call) {
  auto json = jim_.scenario_json();
  if (!json) co_return call.refuse(404, "no scenario is playing");
  call.response.content_type = kJson;
  call.response.body = std::move(*json);
}

awaitable<void> Api::v3_scenario_put(Call& call) {
  auto scenario = scenario_from_json(call.request.body);
  if (!scenario) co_return call.refuse(400, scenario.error());
  jim_.play(std::move(*scenario));
  co_await v3_scenario_get(call);
}

awaitable<void> Api::v3_scenario_delete(Call& call) {
  jim_.play(std::nullopt);
  call.response.status = 204;
  co_return;
}

}  // namespace tabella::mail

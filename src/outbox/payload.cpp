#include "outbox/payload.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/text.h"
#include "base/time_text.h"
#include "mime/field.h"

namespace tabella::outbox {
namespace {

using JsonKind = JsonValue::Kind;

constexpr size_t kMostAttachments = 100;
constexpr size_t kMostLabels = 50;

constexpr std::array<std::string_view, 18> kMembers = {"id",
                                                       "from",
                                                       "reply_to",
                                                       "to",
                                                       "cc",
                                                       "bcc",
                                                       "subject",
                                                       "body_text",
                                                       "body_html",
                                                       "attachments",
                                                       "custom_headers",
                                                       "template",
                                                       "send_at",
                                                       "priority",
                                                       "callback_url",
                                                       "labels",
                                                       "envelope_from",
                                                       "idempotency_key"};

Checked<std::string> text_member(JsonValue object, std::string_view name) {
  const auto value = object.find(name);
  if (!value) return std::string();
  if (value->kind() != JsonKind::string) return invalid(fmt::format("\"{}\" is to be a string", name));
  return std::string(value->string());
}

Checked<void> add_addresses(std::string_view name, JsonValue value, std::vector<mime::Address>& into) {
  if (value.kind() != JsonKind::string)
    return invalid(fmt::format("\"{}\" is to be an address, or a list of addresses", name));
  const auto text = value.string();
  TABELLA_TRY(mime::check_text(name, text));
  auto parsed = mime::parse_addresses(text);
  if (parsed.empty()) return invalid(fmt::format("\"{}\": '{}' is no address", name, text));
  for (auto& address : parsed) {
    // What was read forgivingly may be somebody else.
    if (!mime::is_mailbox(address.address) || text.find(address.address) == std::string_view::npos)
      return invalid(fmt::format("\"{}\": '{}' is no address", name, text));
    into.push_back(std::move(address));
  }
  return {};
}

Checked<std::vector<mime::Address>> addresses(JsonValue object, std::string_view name) {
  std::vector<mime::Address> found;
  const auto value = object.find(name);
  if (!value) return found;
  if (value->kind() != JsonKind::array) {
    TABELLA_TRY(add_addresses(name, *value, found));
    return found;
  }
  for (JsonElements each(*value); each.next();) TABELLA_TRY(add_addresses(name, each.value(), found));
  return found;
}

// The last part of a path or URI: how a file is called that has no name.
std::string file_name(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

Checked<void> add_attachment(JsonValue value, Payload& payload) {
  PayloadAttachment one;
  if (value.kind() == JsonKind::string) {
    one.uri = value.string();
    one.attachment.name = file_name(one.uri);
    payload.elsewhere.push_back(std::move(one));
    return {};
  }
  if (!value.is_object()) return invalid("an attachment is a URI, or an object with uri, path or content");
  one.uri = value.text("uri");
  one.path = value.text("path");
  auto& attachment = one.attachment;
  attachment.name = value.text("name");
  attachment.content_type = value.text("content_type");
  attachment.content_id = value.text("content_id");
  const auto content = value.find("content");
  if ((!one.uri.empty()) + (!one.path.empty()) + content.has_value() != 1)
    return invalid("an attachment has either uri, path or content");
  if (attachment.name.empty()) attachment.name = file_name(one.uri.empty() ? one.path : one.uri);
  if (!content) {
    payload.elsewhere.push_back(std::move(one));
    return {};
  }
  auto bytes = content->kind() == JsonKind::string ? from_base64(content->string()) : std::nullopt;
  if (!bytes) return invalid(fmt::format("the content of attachment '{}' is no base64", attachment.name));
  attachment.bytes = std::move(*bytes);
  payload.draft.attachments.push_back(std::move(attachment));
  return {};
}

Checked<void> read_payload_attachments(JsonValue object, Payload& payload) {
  const auto list = object.find("attachments");
  if (!list) return {};
  if (list->kind() != JsonKind::array) return invalid("\"attachments\" is to be a list");
  for (JsonElements each(*list); each.next();) {
    if (payload.elsewhere.size() + payload.draft.attachments.size() >= kMostAttachments)
      return invalid(fmt::format("an email has at most {} attachments", kMostAttachments));
    TABELLA_TRY(add_attachment(each.value(), payload));
  }
  return {};
}

Checked<void> read_custom_headers(JsonValue object, Payload& payload) {
  const auto headers = object.find("custom_headers");
  if (!headers) return {};
  if (headers->is_object()) {
    for (JsonElements each(*headers); each.next();) {
      if (each.value().kind() != JsonKind::string)
        return invalid(fmt::format("custom header '{}' is to be a string", each.key()));
      payload.draft.headers.emplace_back(each.key(), each.value().string());
    }
    return {};
  }
  if (headers->kind() != JsonKind::array)
    return invalid("\"custom_headers\" is to be an object, or a list of {\"name\", \"value\"}");
  for (JsonElements each(*headers); each.next();) {
    if (!each.value().is_object() || each.value().text("name").empty())
      return invalid("a custom header is {\"name\": \"…\", \"value\": \"…\"}");
    payload.draft.headers.emplace_back(each.value().text("name"), each.value().text("value"));
  }
  return {};
}

Checked<void> read_labels_of(JsonValue object, Payload& payload) {
  const auto labels = object.find("labels");
  if (!labels) return {};
  if (!labels->is_object()) return invalid("\"labels\" is to be an object of strings");
  for (JsonElements each(*labels); each.next();) {
    if (each.value().kind() != JsonKind::string || payload.labels.size() >= kMostLabels)
      return invalid(fmt::format("\"labels\" is to be an object of at most {} strings", kMostLabels));
    payload.labels.emplace(each.key(), each.value().string());
  }
  return {};
}

Checked<void> read_payload_template(JsonValue object, Payload& payload) {
  const auto chosen = object.find("template");
  if (!chosen) return {};
  if (!chosen->is_object() || chosen->text("name").empty())
    return invalid("\"template\" is to be {\"name\": \"…\", \"data\": {…}}");
  payload.template_name = chosen->text("name");
  const auto data = chosen->find("data");
  if (data && !data->is_object()) return invalid("the data of a template is an object");
  if (data)
    append_json(payload.template_data, *data);
  else
    payload.template_data = "{}";
  return {};
}

Checked<void> read_delivery(JsonValue object, Payload& payload) {
  TABELLA_ASSIGN(const auto send_at, text_member(object, "send_at"));
  if (!send_at.empty()) {
    payload.send_at = parse_time(send_at);
    if (!payload.send_at)
      return invalid(fmt::format("\"send_at\": '{}' is no time; one is 2026-12-01T08:00:00Z", send_at));
  }
  TABELLA_ASSIGN(const auto priority, text_member(object, "priority"));
  if (!priority.empty()) {
    const auto named = priority_named(priority);
    if (!named) return invalid("\"priority\" is high, normal or low");
    payload.priority = *named;
  }
  TABELLA_ASSIGN(payload.callback, text_member(object, "callback_url"));
  TABELLA_ASSIGN(payload.envelope_from, text_member(object, "envelope_from"));
  return {};
}

Checked<void> read_bodies(JsonValue object, Payload& payload) {
  TABELLA_ASSIGN(payload.draft.subject, text_member(object, "subject"));
  TABELLA_ASSIGN(auto text, text_member(object, "body_text"));
  TABELLA_ASSIGN(auto html, text_member(object, "body_html"));
  if (object.find("body_text")) payload.draft.text = std::move(text);
  if (object.find("body_html")) payload.draft.html = std::move(html);
  if (!payload.draft.text && !payload.draft.html && payload.template_name.empty())
    return invalid("an email needs body_text, body_html or a template");
  return {};
}

Checked<void> read_people(JsonValue object, Payload& payload) {
  TABELLA_ASSIGN(auto from, addresses(object, "from"));
  if (from.size() != 1) return invalid("\"from\" is to be one address");
  payload.draft.from = std::move(from.front());
  TABELLA_ASSIGN(payload.draft.reply_to, addresses(object, "reply_to"));
  TABELLA_ASSIGN(payload.draft.to, addresses(object, "to"));
  TABELLA_ASSIGN(payload.draft.cc, addresses(object, "cc"));
  TABELLA_ASSIGN(const auto bcc, addresses(object, "bcc"));
  for (const auto* list : {&std::as_const(payload.draft.to), &std::as_const(payload.draft.cc), &bcc})
    for (const auto& address : *list) payload.recipients.push_back(address.address);
  if (payload.recipients.empty()) return invalid("an email needs a recipient in to, cc or bcc");
  return {};
}

}  // namespace

Checked<Payload> parse_payload(JsonValue value) {
  if (!value.is_object()) return invalid("an email is a JSON object");
  for (JsonElements each(value); each.next();)
    if (std::ranges::find(kMembers, each.key()) == kMembers.end())
      return invalid(fmt::format("\"{}\" is nothing that an email has; is it misspelt?", each.key()));
  Payload payload;
  TABELLA_ASSIGN(payload.id, text_member(value, "id"));
  TABELLA_TRY(read_people(value, payload));
  TABELLA_TRY(read_payload_template(value, payload));
  TABELLA_TRY(read_bodies(value, payload));
  TABELLA_TRY(read_payload_attachments(value, payload));
  TABELLA_TRY(read_custom_headers(value, payload));
  TABELLA_TRY(read_labels_of(value, payload));
  TABELLA_TRY(read_delivery(value, payload));
  return payload;
}

}  // namespace tabella::outbox

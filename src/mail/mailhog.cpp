#include "mail/mailhog.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "item/json.h"
#include "mail/model.h"
#include "mime/utf8.h"
#include "net/http.h"

namespace tabella::mail {

using item::JsonArrayWriter;
using item::JsonObjectWriter;

namespace {

std::vector<std::string>* find_any_case(Content& content, std::string_view name) {
  for (auto& [key, values] : content.headers)
    if (net::same_header(key, name)) return &values;
  return nullptr;
}

void add_value(Content& content, const std::string& name, std::string value) {
  auto* values = find_any_case(content, name);
  (values ? *values : content.headers[name]).push_back(std::move(value));
}

void append_text(std::string& out, std::string_view text) {
  if (is_valid_utf8(text))
    append_json_string(out, text);
  else
    append_json_string(out, mime::to_valid_utf8(text));
}

void append_strings(std::string& out, const std::vector<std::string>& texts) {
  JsonArrayWriter array(out);
  for (const auto& text : texts) append_text(array.element(), text);
}

void append_path(std::string& out, const std::string& address) {
  const auto path = split_path(address);
  JsonObjectWriter object(out);
  if (path.relays.empty())
    object.key("Relays").append("null");
  else
    append_strings(object.key("Relays"), path.relays);
  append_text(object.key("Mailbox"), path.mailbox);
  append_text(object.key("Domain"), path.domain);
  object.string("Params", "");
}

// Each level of parts has the text of those below it once more: there is an end to that.
struct Room {
  size_t left;
};

void append_mime(std::string& out, const Content& content, Room& room);

void append_content(std::string& out, const Content& content, bool with_parts, Room& room) {
  JsonObjectWriter object(out);
  {
    JsonObjectWriter headers(object.key("Headers"));
    for (const auto& [name, values] : content.headers) append_strings(headers.key(name), values);
  }
  const bool fits = content.body.size() <= room.left;
  if (fits) room.left -= content.body.size();
  append_text(object.key("Body"), fits ? content.body : std::string_view());
  object.number("Size", static_cast<int64_t>(content.size));
  if (with_parts)
    append_mime(object.key("MIME"), content, room);
  else
    object.key("MIME").append("null");
}

void append_mime(std::string& out, const Content& content, Room& room) {
  if (!content.parts) {
    out.append("null");
    return;
  }
  JsonObjectWriter object(out);
  JsonArrayWriter parts(object.key("Parts"));
  for (const auto& part : *content.parts) append_content(parts.element(), part, true, room);
}

}  // namespace

PathParts split_path(std::string_view address) {
  PathParts parts;
  if (const auto colon = address.find(':'); address.starts_with('@') && colon != std::string_view::npos) {
    for (const auto relay : split(address.substr(0, colon), ',')) parts.relays.emplace_back(relay);
    address.remove_prefix(colon + 1);
  }
  const auto at = address.find('@');
  parts.mailbox = address.substr(0, at);
  if (at != std::string_view::npos) parts.domain = address.substr(at + 1);
  return parts;
}

void add_trace(Content& content, const Message& message, const std::string& hostname) {
  if (!find_any_case(content, "Message-ID"))
    add_value(content, "Message-ID", std::string(short_id(message.id)));
  add_value(content, "Received", received_value(message, hostname));
  add_value(content, "Return-Path", fmt::format("<{}>", message.from));
}

void append_message_json(std::string& out, const Message& message, const std::string& hostname) {
  std::string_view raw = message.raw;
  if (raw.ends_with("\r\n")) raw.remove_suffix(2);
  auto content = parse_content(raw);
  content.size = message.whole ? content.size : message.size;
  add_trace(content, message, hostname);
  JsonObjectWriter object(out);
  object.string("ID", message.id);
  append_path(object.key("From"), message.from);
  {
    JsonArrayWriter to(object.key("To"));
    for (const auto& address : message.to) append_path(to.element(), address);
  }
  Room room{.left = 3 * raw.size() + (1u << 20)};
  append_content(object.key("Content"), content, false, room);
  object.string("Created", time_text(message.created));
  append_mime(object.key("MIME"), content, room);
  JsonObjectWriter envelope(object.key("Raw"));
  append_text(envelope.key("From"), message.from);
  append_strings(envelope.key("To"), message.to);
  append_text(envelope.key("Data"), raw);
  append_text(envelope.key("Helo"), message.helo);
}

}  // namespace tabella::mail

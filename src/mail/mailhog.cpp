#include "mail/mailhog.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_text.h"
#include "base/text.h"
#include "mail/model.h"
#include "mime/utf8.h"
#include "net/http.h"

namespace tabella::mail {

namespace {

constexpr size_t kWrittenAtOnce = 64 * 1024;  // of a text that is written at once

std::vector<std::string>* find_header(Content& content, std::string_view name) {
  for (auto& [key, values] : content.headers)
    if (net::same_header(key, name)) return &values;
  return nullptr;
}

void add_value(Content& content, const std::string& name, std::string value) {
  auto* values = find_header(content, name);
  (values ? *values : content.headers[name]).push_back(std::move(value));
}

void append_mailhog_text(std::string& out, std::string_view text) {
  if (is_valid_utf8(text))
    append_json_string(out, text);
  else
    append_json_string(out, mime::to_valid_utf8(text));
}

void append_strings(std::string& out, const std::vector<std::string>& texts) {
  JsonArrayWriter array(out);
  for (const auto& text : texts) append_mailhog_text(array.element(), text);
}

void append_mailhog_path(std::string& out, const std::string& address) {
  const auto path = split_path(address);
  JsonObjectWriter object(out);
  if (path.relays.empty())
    object.key("Relays").append("null");
  else
    append_strings(object.key("Relays"), path.relays);
  append_mailhog_text(object.key("Mailbox"), path.mailbox);
  append_mailhog_text(object.key("Domain"), path.domain);
  object.string("Params", "");
}

// How it begins, not in the middle of a character.
std::string_view beginning(std::string_view text) {
  if (text.size() <= kWrittenAtOnce) return text;
  size_t end = kWrittenAtOnce;
  while (end > kWrittenAtOnce - 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

// Puts the pieces together: long texts stay where they are, in the message.
class MessageJsonMaker {
 public:
  explicit MessageJsonMaker(MessageJson& json) : json_(json) {}

  void add(const Message& message, const std::string& hostname);

 private:
  void add_long_text(std::string_view text);
  void add_content(const Content& content, bool with_parts);
  void add_mime(const Content& content);

  MessageJson& json_;
  std::string out_;
  size_t room_ = 0;  // each level of parts has the text of those below it once more: there is an end to that
};

void MessageJsonMaker::add_long_text(std::string_view text) {
  if (text.size() <= kWrittenAtOnce) return append_mailhog_text(out_, text);
  out_.push_back('"');
  json_.pieces_.push_back({.json = std::exchange(out_, {}), .text = text});
  out_.push_back('"');
}

void MessageJsonMaker::add_content(const Content& content, bool with_parts) {
  JsonObjectWriter object(out_);
  {
    JsonObjectWriter headers(object.key("Headers"));
    for (const auto& [name, values] : content.headers) append_strings(headers.key(name), values);
  }
  const bool fits = content.body.size() <= room_;
  if (fits) room_ -= content.body.size();
  object.key("Body");
  add_long_text(fits ? content.body : std::string_view());
  object.number("Size", static_cast<int64_t>(content.size));
  object.key("MIME");
  if (with_parts)
    add_mime(content);
  else
    out_.append("null");
}

void MessageJsonMaker::add_mime(const Content& content) {
  if (!content.parts) {
    out_.append("null");
    return;
  }
  JsonObjectWriter object(out_);
  JsonArrayWriter parts(object.key("Parts"));
  for (const auto& part : *content.parts) {
    parts.element();
    add_content(part, true);
  }
}

void MessageJsonMaker::add(const Message& message, const std::string& hostname) {
  std::string_view raw = message.raw;
  if (raw.ends_with("\r\n")) raw.remove_suffix(2);
  auto content = parse_content(raw);
  content.size = message.whole ? content.size : message.size;
  add_trace(content, message, hostname);
  {
    JsonObjectWriter object(out_);
    object.string("ID", message.id);
    append_mailhog_path(object.key("From"), message.from);
    {
      JsonArrayWriter to(object.key("To"));
      for (const auto& address : message.to) append_mailhog_path(to.element(), address);
    }
    room_ = 3 * raw.size() + (1u << 20);
    object.key("Content");
    add_content(content, false);
    object.string("Created", time_text(message.created));
    object.key("MIME");
    add_mime(content);
    JsonObjectWriter envelope(object.key("Raw"));
    append_mailhog_text(envelope.key("From"), message.from);
    append_strings(envelope.key("To"), message.to);
    envelope.key("Data");
    add_long_text(raw);
    append_mailhog_text(envelope.key("Helo"), message.helo);
  }
  json_.pieces_.push_back({.json = std::move(out_), .text = {}});
}

MessageJson::MessageJson(const Message& message, const std::string& hostname) {
  MessageJsonMaker(*this).add(message, hostname);
}

bool MessageJson::next(std::string& out) {
  for (const auto enough = out.size() + kWrittenAtOnce; out.size() < enough;) {
    if (piece_ == pieces_.size()) return false;
    auto& [json, text] = pieces_[piece_];
    if (at_ == 0) out.append(json);
    const auto slice = beginning(text.substr(at_));
    if (is_valid_utf8(slice))
      append_json_text(out, slice);
    else
      append_json_text(out, mime::to_valid_utf8(slice));
    at_ += slice.size();
    if (at_ < text.size()) continue;
    ++piece_;
    at_ = 0;
  }
  return true;
}

void append_message_json(std::string& out, const Message& message, const std::string& hostname) {
  MessageJson json(message, hostname);
  while (json.next(out)) {
  }
}

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
  if (!find_header(content, "Message-ID"))
    add_value(content, "Message-ID", std::string(short_id(message.id)));
  add_value(content, "Received", received_value(message, hostname));
  add_value(content, "Return-Path", fmt::format("<{}>", message.from));
}

}  // namespace tabella::mail

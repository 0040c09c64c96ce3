#include "mail/summary.h"

#include "mail/shown.h"
#include "mime/utf8.h"

namespace tabella::mail {

void append_addresses(std::string& out, const std::vector<mime::Address>& addresses) {
  JsonArrayWriter array(out);
  for (const auto& address : addresses) {
    JsonObjectWriter object(array.element());
    object.string("name", address.name);
    object.string("address", address.address);
  }
}

std::string snippet(const mime::Message& parsed) {
  constexpr size_t kLooked = 16 * 1024;
  constexpr size_t kLongest = 200;
  std::string line;
  for (const char c : shown_text(parsed, kLooked)) {
    const bool blank = static_cast<unsigned char>(c) <= 0x20;
    if (!blank)
      line.push_back(c);
    else if (!line.empty() && line.back() != ' ')
      line.push_back(' ');
    if (line.size() >= kLongest) break;
  }
  // Not in the middle of a character.
  while (!line.empty() && !is_valid_utf8(line)) line.pop_back();
  return line;
}

void write_summary(JsonObjectWriter& object, const Message& message, const mime::Message& parsed) {
  object.string("id", url_spelling(message.id));
  object.string("created", time_text(message.created));
  object.number("expires", message.expires);
  object.string("message_id", parsed.message_id);
  append_addresses(object.key("from"), parsed.from);
  append_addresses(object.key("to"), parsed.to);
  append_addresses(object.key("cc"), parsed.cc);
  append_addresses(object.key("bcc"), parsed.bcc);
  append_addresses(object.key("reply_to"), parsed.reply_to);
  object.string("subject", parsed.subject);
  object.string("snippet", snippet(parsed));
  object.number("size", static_cast<int64_t>(message.size));
  object.number("attachments", static_cast<int64_t>(parsed.attachments()));
  object.boolean("read", message.read);
  {
    JsonArrayWriter tags(object.key("tags"));
    for (const auto& tag : message.tags) append_json_string(tags.element(), tag);
  }
  JsonObjectWriter envelope(object.key("envelope"));
  envelope.string("from", mime::to_valid_utf8(message.from));
  {
    JsonArrayWriter to(envelope.key("to"));
    for (const auto& address : message.to) append_json_string(to.element(), mime::to_valid_utf8(address));
  }
  envelope.string("helo", mime::to_valid_utf8(message.helo));
  envelope.string("peer", message.peer);
  envelope.string("user", mime::to_valid_utf8(message.user));
}

void append_summary_json(std::string& out, const Message& message) {
  JsonObjectWriter object(out);
  write_summary(object, message, mime::parse(message.raw));
}

}  // namespace tabella::mail

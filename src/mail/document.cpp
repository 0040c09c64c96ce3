#include "mail/document.h"

#include <algorithm>

#include "mime/fold.h"
#include "mime/html.h"
#include "mime/utf8.h"

namespace tabella::mail {
namespace {

// Of one message; what comes after it is not found.
constexpr size_t kMostText = 2u << 20;

class Pieces {
 public:
  explicit Pieces(search::Document& document) : document_(document) {}

  void add(char field, std::string_view text) {
    if (left_ == 0 || text.empty()) return;
    text = text.substr(0, left_);
    left_ -= text.size();
    auto folded = mime::fold(is_valid_utf8(text) ? text : std::string_view(mime::to_valid_utf8(text)));
    std::ranges::replace(folded, '\0', ' ');
    document_.pieces.push_back({.field = field, .text = std::move(folded)});
  }
  void add(char field, const std::vector<mime::Address>& addresses) {
    for (const auto& address : addresses) {
      add(field, address.name);
      add(field, address.address);
    }
  }
  // How much of an encoded text can matter: quoted-printable makes three of one, and lines end.
  size_t encoded_left() const { return 4 * left_; }

 private:
  search::Document& document_;
  size_t left_ = kMostText;
};

char field_of(const std::string& header) {
  static constexpr std::pair<std::string_view, char> kHeaderFields[] = {{"from", kFrom},
                                                                        {"to", kTo},
                                                                        {"cc", kCc},
                                                                        {"bcc", kBcc},
                                                                        {"reply-to", kReplyTo},
                                                                        {"subject", kSubject},
                                                                        {"message-id", kMessageId}};
  const auto folded = mime::fold(header);
  for (const auto& [name, field] : kHeaderFields)
    if (folded == name) return field;
  return search::kAnyField;
}

void add_part(Pieces& pieces, const mime::Part& part) {
  pieces.add(kAttachment, part.filename);
  for (const auto& header : part.headers) pieces.add(search::kAnyField, header.raw);
  if (part.content_type == "message/rfc822" && part.encoding != "base64") {
    pieces.add(search::kAnyField, part.source);
    return;
  }
  if (!part.is_text()) return;
  const auto text = part.text_within(pieces.encoded_left());
  pieces.add(search::kAnyField, part.content_type == "text/html" ? mime::html_to_text(text) : text);
  // MailHog's users search for what stands in the message as it was sent.
  if (part.content_type == "text/html" || part.encoding == "quoted-printable")
    pieces.add(search::kAnyField, part.source);
}

}  // namespace

std::string inbox_key(std::string_view name) { return "inbox:" + mime::fold(name); }
std::string tag_label(std::string_view tag) { return "tag:" + std::string(tag); }

std::vector<std::string> labels_of(const Message& message) {
  std::vector<std::string> labels;
  if (message.read) labels.emplace_back(kReadLabel);
  for (const auto& tag : message.tags) labels.push_back(tag_label(tag));
  return labels;
}

std::vector<std::string> keys_of(const Message& message) {
  constexpr size_t kLongest = 512;
  std::vector<std::string> keys;
  for (const auto& address : message.to) keys.push_back(inbox_key(address));
  if (!message.user.empty()) keys.push_back(inbox_key(message.user));
  std::erase_if(keys, [](const std::string& key) { return key.size() > kLongest; });
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

search::Document document_of(const Message& message, const mime::Message& parsed) {
  search::Document document{.id = message.id, .expires = message.expires, .size = message.size};
  Pieces pieces(document);
  pieces.add(kFrom, message.from);
  for (const auto& address : message.to) pieces.add(kTo, address);
  for (const auto& header : parsed.headers) {
    const char field = field_of(header.name);
    pieces.add(field, header.value);
    if (header.raw != header.value) pieces.add(search::kAnyField, header.raw);
  }
  for (const auto& part : parsed.parts) add_part(pieces, part);
  document.keys = keys_of(message);
  if (parsed.attachments() > 0) document.flags |= kHasAttachment;
  if (std::ranges::any_of(parsed.parts, [](const auto& part) { return part.disposition == "inline"; }))
    document.flags |= kHasInline;
  return document;
}

}  // namespace tabella::mail

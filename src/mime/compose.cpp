#include "mime/compose.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/text.h"
#include "base/utf8.h"
#include "mime/encodings.h"
#include "mime/field.h"

namespace tabella::mime {
namespace {

constexpr size_t kLongestLine = 998;

// A part with its Content- headers.
struct Entity {
  std::string headers;
  std::string body;
};

std::string with_crlf(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 32);
  for (size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of("\r\n", at), text.size());
    out.append(text.substr(at, end - at));
    if (end == text.size()) break;
    out.append("\r\n");
    at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  return out;
}

// Can travel as it is, wherever it has to go. Its lines end with CR LF.
bool is_7bit(std::string_view text) {
  size_t line = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte == '\n') line = i + 1;
    if (byte == '\n' || byte == '\r') continue;
    if (i - line >= kLongestLine || byte >= 0x7f || (byte < 0x20 && !is_space(text[i]))) return false;
  }
  return true;
}

bool is_token(std::string_view text) {
  return !text.empty() && is_plain(text) && text.find_first_of("()<>@,;:\\\"/[]?=") == std::string_view::npos;
}

Checked<Entity> text_entity(std::string_view what, std::string_view subtype, std::string_view text) {
  if (!is_valid_utf8(text)) return invalid(fmt::format("{} is not valid UTF-8.", what));
  auto body = with_crlf(text);
  std::string_view encoding = "7bit";
  if (!is_7bit(body)) {
    // Text in Latin letters stays readable; other scripts would be three times as long.
    auto quoted_printable = encode_quoted_printable(body);
    const bool quotes = quoted_printable.size() <= body.size() / 57 * 78 + 78;
    encoding = quotes ? "quoted-printable" : "base64";
    body = quotes ? std::move(quoted_printable) : encode_base64(body);
  }
  return Entity{fmt::format("Content-Type: text/{}; charset=\"utf-8\"\r\nContent-Transfer-Encoding: {}\r\n",
                            subtype, encoding),
                std::move(body)};
}

// A message within the message must not be base64 (RFC 2046, 5.2.1): one that is not ASCII goes as a file.
Checked<ParameterField> content_type_of(const Attachment& attachment, bool as_it_is) {
  TABELLA_TRY(check_text("An attachment's content type", attachment.content_type));
  const auto type = parse_parameters(attachment.content_type.empty() ? "application/octet-stream"
                                                                     : attachment.content_type);
  const auto slash = std::min(type.value.find('/'), type.value.size());
  if (slash == type.value.size() || !is_token(type.value.substr(0, slash)) ||
      !is_token(type.value.substr(slash + 1)) || type.value.starts_with("multipart/"))
    return invalid(fmt::format("'{}' is not the content type of an attachment.", attachment.content_type));
  const bool message = type.value.starts_with("message/") && !as_it_is;
  ParameterField field("Content-Type", message ? "application/octet-stream" : type.value);
  for (const auto& [name, value] : type.parameters) {
    if (!is_token(name) || name.find_first_of("*'%") != std::string::npos)
      return invalid(fmt::format("'{}' is not the content type of an attachment.", attachment.content_type));
    // A value can come out of RFC 2231's percent signs.
    TABELLA_TRY(check_text("An attachment's content type", value));
    if (name != "name") field.parameter(name, value);
  }
  if (!attachment.name.empty()) field.old_parameter("name", attachment.name);
  return field;
}

Checked<std::string> disposition_of(const Attachment& attachment) {
  std::string_view kind = attachment.disposition;
  if (kind.empty()) kind = attachment.content_id.empty() ? "attachment" : "inline";
  if (kind != "attachment" && kind != "inline")
    return invalid(fmt::format("'{}' is not a disposition: attachment or inline.", to_valid_utf8(kind)));
  ParameterField field("Content-Disposition", kind);
  if (!attachment.name.empty()) field.parameter("filename", attachment.name);
  return field.text();
}

bool is_id(std::string_view id) {
  return !id.empty() && id.size() < 900 && is_plain(id) && id.find_first_of("<>") == std::string_view::npos;
}

// Its bytes come back as they are: always base64.
Checked<Entity> file_entity(const Attachment& attachment) {
  TABELLA_TRY(check_text("An attachment's name", attachment.name));
  const bool message = lower(attachment.content_type).starts_with("message/");
  auto lines = message ? with_crlf(attachment.bytes) : std::string();
  const bool as_it_is = message && is_7bit(lines);
  TABELLA_ASSIGN(const auto type, content_type_of(attachment, as_it_is));
  TABELLA_ASSIGN(const auto disposition, disposition_of(attachment));
  Entity entity;
  entity.headers = type.text() + disposition;
  if (!attachment.content_id.empty()) {
    if (!is_id(attachment.content_id))
      return invalid("An attachment's content id must be printable ASCII without blanks and brackets.");
    entity.headers += fmt::format("Content-ID: <{}>\r\n", attachment.content_id);
  }
  if (!attachment.description.empty()) {
    TABELLA_ASSIGN(const auto description, text_field("Content-Description", attachment.description));
    entity.headers += description;
  }
  entity.headers += fmt::format("Content-Transfer-Encoding: {}\r\n", as_it_is ? "7bit" : "base64");
  entity.body = as_it_is ? std::move(lines) : encode_base64(attachment.bytes);
  return entity;
}

// "=_" stands in neither base64 nor quoted-printable; what goes as it is, is looked through.
std::string boundary_for(const std::vector<Entity>& parts) {
  while (true) {
    auto boundary = fmt::format("=_{:016x}{:016x}", random_bits(), random_bits());
    if (std::ranges::none_of(parts, [&](const Entity& part) { return part.body.contains(boundary); }))
      return boundary;
  }
}

// One part needs no frame.
Entity multipart(std::string_view subtype, std::vector<Entity> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  const auto boundary = boundary_for(parts);
  ParameterField type("Content-Type", fmt::format("multipart/{}", subtype));
  if (subtype == "related") type.parameter("type", "text/html");
  Entity whole{type.parameter("boundary", boundary).text(), {}};
  for (const auto& part : parts)
    whole.body += fmt::format("--{}\r\n{}\r\n{}\r\n", boundary, part.headers, part.body);
  whole.body += fmt::format("--{}--\r\n", boundary);
  return whole;
}

// mixed { alternative { text, related { html, what it shows } }, files }, with the frames that are needed.
Checked<Entity> content_of(const Draft& draft) {
  std::vector<Entity> shown, files;
  for (const auto& attachment : draft.attachments) {
    TABELLA_ASSIGN(auto entity, file_entity(attachment));
    (draft.html && !attachment.content_id.empty() ? shown : files).push_back(std::move(entity));
  }
  std::vector<Entity> bodies;
  if (draft.text || (!draft.html && files.empty())) {
    TABELLA_ASSIGN(auto text, text_entity("The text", "plain", draft.text.value_or("")));
    bodies.push_back(std::move(text));
  }
  if (draft.html) {
    TABELLA_ASSIGN(auto html, text_entity("The HTML", "html", *draft.html));
    shown.insert(shown.begin(), std::move(html));
    bodies.push_back(multipart("related", std::move(shown)));
  }
  if (!bodies.empty()) files.insert(files.begin(), multipart("alternative", std::move(bodies)));
  return multipart("mixed", std::move(files));
}

bool is_reserved(std::string_view name) {
  static constexpr std::string_view kReserved[] = {"from",         "reply-to",
                                                   "to",           "cc",
                                                   "bcc",          "subject",
                                                   "date",         "message-id",
                                                   "return-path",  "mime-version",
                                                   "received",     "dkim-signature",
                                                   "received-spf", "authentication-results"};
  const auto folded = lower(name);
  return std::ranges::find(kReserved, folded) != std::end(kReserved) || folded.starts_with("content-") ||
         folded.starts_with("resent-") || folded.starts_with("arc-");
}

Checked<std::string> headers_of(const Draft& draft) {
  if (!is_id(draft.message_id) || !draft.message_id.contains('@'))
    return invalid("The message id must be printable ASCII with an '@', without blanks and brackets.");
  std::string headers =
      fmt::format("Message-ID: <{}>\r\nDate: {}\r\n", draft.message_id, date_text(draft.date));
  TABELLA_ASSIGN(const auto from, address_field("From", {&draft.from, 1}));
  headers += from;
  for (const auto& [name, addresses] :
       {std::pair{"Reply-To", &draft.reply_to}, {"To", &draft.to}, {"Cc", &draft.cc}}) {
    if (addresses->empty()) continue;
    TABELLA_ASSIGN(const auto field, address_field(name, *addresses));
    headers += field;
  }
  TABELLA_ASSIGN(const auto subject, text_field("Subject", draft.subject));
  headers += subject;
  for (const auto& [name, value] : draft.headers) {
    if (is_reserved(name))
      return invalid(fmt::format("The header {} cannot be set as a custom header.", name));
    TABELLA_ASSIGN(const auto field, text_field(name, value));
    headers += field;
  }
  return headers + "MIME-Version: 1.0\r\n";
}

bool has_8bit(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
}

// The line at the front, with its end.
std::string_view front_line(std::string_view text) {
  return text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
}

// The field at the front with the lines that continue it; empty: there is none.
std::string_view front_field(std::string_view text) {
  if (text.empty()) return {};
  const auto first = front_line(text);
  const auto colon = first.find(':');
  if (colon == std::string_view::npos || !is_plain(trim(first.substr(0, colon))) || colon == 0 ||
      is_space(first.front()))
    return {};
  auto size = first.size();
  while (size < text.size() && (text[size] == ' ' || text[size] == '\t'))
    size += front_line(text.substr(size)).size();
  return text.substr(0, size);
}

bool is_named(std::string_view field, std::string_view name) {
  return lower(trim(field.substr(0, field.find(':')))) == name;
}

}  // namespace

std::string make_message_id(std::string_view host) { return fmt::format("{}@{}", make_uuid(), host); }

Checked<Prepared> compose(const Draft& draft) {
  TABELLA_ASSIGN(auto message, headers_of(draft));
  TABELLA_ASSIGN(const auto content, content_of(draft));
  const bool utf8 = has_8bit(message);
  message.reserve(message.size() + content.headers.size() + content.body.size() + 4);
  message += content.headers;
  message += "\r\n";
  message += content.body;
  if (!message.ends_with("\r\n")) message += "\r\n";
  return Prepared{.bytes = std::move(message), .needs_utf8 = utf8};
}

Checked<Prepared> complete(std::string_view raw, const Defaults& defaults) {
  // Mailboxes begin a message with a line of their own.
  if (raw.starts_with("From ")) raw.remove_prefix(front_line(raw).size());
  std::string headers;
  bool dated = false;
  bool has_sender = false;
  bool named = false;
  for (auto field = front_field(raw); !field.empty(); field = front_field(raw)) {
    raw.remove_prefix(field.size());
    // A CR alone is the end of a line to some programs and not to others: two would read different headers.
    for (size_t cr = field.find('\r'); cr != std::string_view::npos; cr = field.find('\r', cr + 1))
      if (!field.substr(cr + 1).starts_with('\n'))
        return invalid("The message's headers hold a CR that does not end a line.");
    if (field.contains('\0')) return invalid("The message's headers hold a NUL.");
    if (is_named(field, "bcc") || is_named(field, "resent-bcc")) continue;
    has_sender = has_sender || is_named(field, "from");
    dated = dated || is_named(field, "date");
    named = named || is_named(field, "message-id");
    headers += with_crlf(field);
  }
  if (!has_sender) return invalid("The message has no From header.");
  if (!headers.ends_with('\n')) headers += "\r\n";
  if (!named) headers += fmt::format("Message-ID: <{}>\r\n", defaults.message_id);
  if (!dated) headers += fmt::format("Date: {}\r\n", date_text(defaults.date));
  // What is no header begins the body, with or without an empty line before it.
  if (raw.starts_with("\r\n") || raw.starts_with('\n')) raw.remove_prefix(front_line(raw).size());
  Prepared prepared{.bytes = std::move(headers)};
  prepared.needs_utf8 = has_8bit(prepared.bytes);
  prepared.needs_8bit = has_8bit(raw);
  prepared.bytes += "\r\n" + with_crlf(raw);
  if (!prepared.bytes.ends_with("\r\n")) prepared.bytes += "\r\n";
  return prepared;
}

std::vector<Address> recipients_of(std::string_view raw, size_t most) {
  std::vector<Address> recipients;
  std::set<std::string> seen;
  for (const auto& header : take_headers(raw)) {
    const auto name = lower(header.name);
    if (name != "to" && name != "cc" && name != "bcc") continue;
    for (auto& address : parse_addresses(header.raw)) {
      if (recipients.size() > most) return recipients;
      if (seen.insert(address.address).second) recipients.push_back(std::move(address));
    }
  }
  return recipients;
}

}  // namespace tabella::mime

#include "mime/dsn.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "mime/message.h"

namespace tabella::mime {
namespace {

constexpr size_t kMostRecipients = 1000;
constexpr size_t kLongestDiagnostic = 1000;
constexpr size_t kLongestType = 64 * 1024;  // of a Content-Type

using Action = DeliveryStatus::Action;

std::string field_of(const std::vector<Header>& fields, std::string_view name) {
  const auto* field = find_header(fields, name);
  return field ? std::string(trim(field->value)) : std::string();
}

std::string without_brackets(std::string_view text) {
  text = trim(text);
  if (text.starts_with('<') && text.ends_with('>')) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

// "rfc822; a@x.org": what stands behind the type.
std::string without_type(std::string_view text) {
  const auto semicolon = text.find(';');
  return std::string(trim(semicolon == std::string_view::npos ? text : text.substr(semicolon + 1)));
}

std::string shortened(std::string_view text) {
  text = text.substr(0, kLongestDiagnostic);
  return std::string(text.substr(0, valid_utf8_length(text)));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "5.1.1" at the front of the text (RFC 3463); empty: there is none.
std::string_view status_at_front(std::string_view text) {
  size_t at = 0;
  for (int part = 0; part < 3; ++part) {
    if (part > 0) {
      if (at == text.size() || text[at] != '.') return {};
      ++at;
    }
    const auto begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == begin || at - begin > (part == 0 ? 1 : 3)) return {};
  }
  return text.front() == '2' || text.front() == '4' || text.front() == '5' ? text.substr(0, at)
                                                                           : std::string_view();
}

// The word that the field begins with. Where it is none of the five, the status' class tells.
std::optional<Action> action_of(std::string_view field, std::string_view status) {
  static constexpr std::array<std::pair<std::string_view, Action>, 5> kActions = {
      {{"failed", Action::failed},
       {"delayed", Action::delayed},
       {"delivered", Action::delivered},
       {"relayed", Action::relayed},
       {"expanded", Action::expanded}}};
  const auto word = lower(field.substr(0, std::min(field.find_first_of(" \t(;"), field.size())));
  for (const auto& [name, action] : kActions)
    if (word == name) return action;
  if (status.empty()) return std::nullopt;
  return status.front() == '5' ? Action::failed : status.front() == '4' ? Action::delayed : Action::delivered;
}

std::optional<DeliveryStatus> recipient_of(const std::vector<Header>& fields) {
  DeliveryStatus recipient{
      .original_recipient = without_brackets(without_type(field_of(fields, "original-recipient"))),
      .final_recipient = without_brackets(without_type(field_of(fields, "final-recipient"))),
      .status = std::string(status_at_front(field_of(fields, "status"))),
      .diagnostic = shortened(without_type(field_of(fields, "diagnostic-code")))};
  if (recipient.original_recipient.empty() && recipient.final_recipient.empty()) return std::nullopt;
  const auto action = action_of(field_of(fields, "action"), recipient.status);
  if (!action) return std::nullopt;
  recipient.action = *action;
  return recipient;
}

// Blocks of fields with empty lines between them: the first is about the message, each other about a
// recipient.
std::vector<DeliveryStatus> read_statuses(std::string_view blocks) {
  std::vector<DeliveryStatus> recipients;
  while (!blocks.empty() && recipients.size() < kMostRecipients) {
    const auto before = blocks.size();
    if (auto recipient = recipient_of(take_headers(blocks))) recipients.push_back(std::move(*recipient));
    // A line that is no field.
    if (blocks.size() == before) blocks.remove_prefix(std::min(blocks.find('\n'), blocks.size() - 1) + 1);
  }
  return recipients;
}

std::vector<DeliveryStatus> parse_report(const Message& message) {
  const auto* type = find_header(message.headers, "content-type");
  if (!type ||
      parse_parameters(std::string_view(type->raw).substr(0, kLongestType)).value != "multipart/report")
    return {};
  const auto status = std::ranges::find_if(message.parts, [](const Part& part) {
    return part.content_type == "message/delivery-status" ||
           part.content_type == "message/global-delivery-status";
  });
  if (status == message.parts.end()) return {};
  return read_statuses(status->content());
}

// A paragraph and the empty line behind it, taken off the front.
std::string_view take_paragraph(std::string_view& text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  const auto end = std::min(text.find("\n\n"), text.size());
  const auto paragraph = text.substr(0, end);
  text.remove_prefix(end);
  while (text.starts_with('\n')) text.remove_prefix(1);
  return paragraph;
}

// "<a@x.org>:\nSorry, no mailbox here by that name. (#5.1.1)"
std::optional<DeliveryStatus> qmail_recipient_of(std::string_view paragraph) {
  const auto line_end = std::min(paragraph.find('\n'), paragraph.size());
  const auto line = paragraph.substr(0, line_end);
  if (!line.starts_with('<') || !line.ends_with(">:") || line.size() <= 3) return std::nullopt;
  auto reason = std::string(paragraph.substr(std::min(line_end + 1, paragraph.size())));
  std::ranges::replace(reason, '\n', ' ');
  DeliveryStatus recipient{.final_recipient = to_valid_utf8(line.substr(1, line.size() - 3)),
                           .status = "5.0.0",
                           .diagnostic = shortened(to_valid_utf8(reason))};
  if (const auto hash = reason.rfind("(#"); hash != std::string::npos)
    if (const auto status = status_at_front(std::string_view(reason).substr(hash + 2)); !status.empty())
      recipient.status = status;
  return recipient;
}

// QSBMF: "Hi. This is the …", a paragraph for each recipient, a line that begins with '-', the original
// message.
std::vector<DeliveryStatus> parse_qmail(const Message& message) {
  if (message.parts.size() != 1 || message.parts[0].content_type != "text/plain") return {};
  auto body = message.parts[0].content();
  std::erase(body, '\r');
  std::string_view rest = body;
  if (!take_paragraph(rest).starts_with("Hi. This is the ")) return {};
  std::vector<DeliveryStatus> recipients;
  while (!rest.empty() && recipients.size() < kMostRecipients) {
    const auto paragraph = take_paragraph(rest);
    if (paragraph.starts_with('-')) break;
    if (auto recipient = qmail_recipient_of(paragraph)) recipients.push_back(std::move(*recipient));
  }
  return recipients;
}

}  // namespace

std::vector<DeliveryStatus> parse_delivery_report(std::string_view bytes) {
  const auto message = parse(bytes);
  auto recipients = parse_report(message);
  return recipients.empty() ? parse_qmail(message) : recipients;
}

}  // namespace tabella::mime

#include "outbox/ses_requests.h"

#include <algorithm>

#include "base/base64.h"
#include "base/text.h"
#include "outbox/ses_reader.h"
#include "smtp/address.h"

namespace tabella::outbox {

namespace {

constexpr size_t kMostHeaders = 15;
constexpr size_t kMostTags = 50;
constexpr size_t kMostTemplateData = 262'144;
constexpr std::string_view kConfigurationSetLabel = "ses:configuration-set";  // SES's own tag for it

using Mistake = std::optional<Invalid>;

template <class T>
Checked<T> unless(Mistake& mistake, T value) {
  if (mistake) return std::unexpected(std::move(*mistake));
  return value;
}

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '-';
}

std::vector<mime::Address> read_addresses(SesReader& reader, std::string_view name) {
  std::vector<mime::Address> addresses;
  for (const auto value : reader.list(name, kSesMostRecipients)) {
    if (value.kind() != JsonValue::Kind::string) {
      reader.refuse(fmt::format("{} must be a list of strings.", reader.called(name)));
      break;
    }
    addresses.push_back(reader.value_or_refuse(parse_ses_address(reader.called(name), value.string())));
  }
  return addresses;
}

SesDestination read_destination(SesReader reader) {
  SesDestination destination{.to = read_addresses(reader, "ToAddresses"),
                             .cc = read_addresses(reader, "CcAddresses"),
                             .bcc = read_addresses(reader, "BccAddresses")};
  if (destination.size() > kSesMostRecipients)
    reader.refuse(fmt::format("The email has {} recipients; it may have {}: send several.",
                              destination.size(), kSesMostRecipients));
  return destination;
}

SesLabels read_tags(SesReader& reader, std::string_view name) {
  SesLabels labels;
  for (auto& tag : reader.objects(name, kMostTags)) {
    const auto key = tag.required_text("Name");
    const auto value = tag.required_text("Value");
    const auto fits = [](std::string_view text, std::string_view others) {
      return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, [others](char c) {
        return is_name_character(c) || others.contains(c);
      });
    };
    if (!fits(key, ":") || !fits(value, ".@"))
      tag.refuse(
          fmt::format("{} has a tag that is no name and value of letters, digits, '_' and '-', of at "
                      "most 256 characters each.",
                      reader.called(name)));
    labels.insert_or_assign(std::string(key), std::string(value));
  }
  return labels;
}

std::vector<std::pair<std::string, std::string>> read_headers(SesReader& reader, std::string_view name) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (auto& header : reader.objects(name, kMostHeaders))
    headers.emplace_back(header.required_text("Name"), header.required_text("Value"));
  return headers;
}

std::string read_blob(SesReader& reader, std::string_view name) {
  auto bytes = from_base64(reader.required_text(name));
  if (!bytes) reader.refuse(fmt::format("{} must be base64, with padding.", reader.called(name)));
  return std::move(bytes).value_or("");
}

std::vector<mime::Attachment> read_attachments(SesReader& reader) {
  std::vector<mime::Attachment> attachments;
  for (auto& one : reader.objects("Attachments")) {
    const auto disposition = one.text("ContentDisposition").value_or("");
    if (!disposition.empty() && disposition != "ATTACHMENT" && disposition != "INLINE")
      one.refuse(fmt::format("{} must be ATTACHMENT or INLINE.", one.called("ContentDisposition")));
    // How it is encoded on its way (ContentTransferEncoding) is left to mime/compose.h.
    attachments.push_back({.name = std::string(one.required_text("FileName")),
                           .content_type = std::string(one.text("ContentType").value_or("")),
                           .content_id = std::string(one.text("ContentId").value_or("")),
                           .bytes = read_blob(one, "RawContent"),
                           .description = std::string(one.text("ContentDescription").value_or("")),
                           .disposition = lower(disposition)});
  }
  return attachments;
}

// Its Charset says how it would be encoded; here that is UTF-8.
std::optional<std::string> read_content(SesReader& reader, std::string_view name) {
  auto content = reader.object(name);
  if (!content) return std::nullopt;
  return std::string(content->required_text("Data"));
}

void read_simple(SesReader reader, mime::Draft& draft) {
  auto subject = read_content(reader, "Subject");
  if (!subject) reader.refuse(fmt::format("{} is missing.", reader.called("Subject")));
  draft.subject = std::move(subject).value_or("");
  if (auto body = reader.object("Body")) {
    draft.text = read_content(*body, "Text");
    draft.html = read_content(*body, "Html");
  }
  if (!draft.text && !draft.html)
    reader.refuse(fmt::format("{0}.Text or {0}.Html is missing.", reader.called("Body")));
  draft.headers = read_headers(reader, "Headers");
  draft.attachments = read_attachments(reader);
}

EmailTemplate read_template_content(SesReader& reader) {
  const auto owned = [](std::optional<std::string_view> text) {
    return text ? std::optional<std::string>(*text) : std::nullopt;
  };
  EmailTemplate content{.subject = std::string(reader.required_text("Subject")),
                        .text = owned(reader.text("Text")),
                        .html = owned(reader.text("Html"))};
  if (!content.text && !content.html)
    reader.refuse(fmt::format("{} or {} is missing.", reader.called("Text"), reader.called("Html")));
  return content;
}

Checked<> check_object(std::string_view member, std::string_view text) {
  if (text.size() > kMostTemplateData)
    return invalid(fmt::format("{} has {} bytes; it may have {}.", member, text.size(), kMostTemplateData));
  JsonDocument document;
  const auto data = document.parse(text);
  if (data && data->is_object()) return {};
  return invalid(fmt::format("{} must be a JSON object, as text.", member));
}

std::string read_data(SesReader& reader, std::string_view name) {
  const auto data = reader.text(name).value_or("");
  if (data.empty()) return "{}";
  if (auto checked = check_object(reader.called(name), data); !checked)
    reader.refuse(std::move(checked.error().message));
  return std::string(data);
}

// arn:aws:ses:region:account:template/name
std::string_view name_in_arn(std::string_view arn) {
  constexpr std::string_view kBefore = ":template/";
  const auto at = arn.find(kBefore);
  return at == std::string_view::npos ? std::string_view() : arn.substr(at + kBefore.size());
}

void read_template(SesReader reader, SesEmail& email) {
  SesTemplate used;
  used.name = reader.text("TemplateName").value_or(name_in_arn(reader.text("TemplateArn").value_or("")));
  if (auto content = reader.object("TemplateContent")) {
    if (!used.name.empty())
      reader.refuse(fmt::format("{} and {} cannot both be given.", reader.called("TemplateName"),
                                reader.called("TemplateContent")));
    used.content = read_template_content(*content);
  } else if (used.name.empty()) {
    reader.refuse(
        fmt::format("{} or {} is missing.", reader.called("TemplateName"), reader.called("TemplateContent")));
  }
  used.data = read_data(reader, "TemplateData");
  email.with_template = std::move(used);
  email.draft.headers = read_headers(reader, "Headers");
  email.draft.attachments = read_attachments(reader);
}

// What both ways of sending have.
void read_common(SesReader& reader, SesEmail& email) {
  if (const auto from = reader.text("FromEmailAddress"))
    email.draft.from = reader.value_or_refuse(parse_ses_address("FromEmailAddress", *from));
  else if (!email.raw)
    reader.refuse("FromEmailAddress is missing.");
  email.draft.reply_to = read_addresses(reader, "ReplyToAddresses");
  if (const auto address = reader.text("FeedbackForwardingEmailAddress"))
    email.bounces_to =
        reader.value_or_refuse(parse_ses_address("FeedbackForwardingEmailAddress", *address)).address;
  if (reader.has("ListManagementOptions"))
    reader.refuse("ListManagementOptions: there are no contact lists here; leave it out.");
  email.configuration_set = reader.text("ConfigurationSetName").value_or("");
  if (!email.configuration_set.empty()) email.labels.emplace(kConfigurationSetLabel, email.configuration_set);
}

SesBulkEntry read_entry(SesReader reader) {
  SesBulkEntry entry;
  if (auto destination = reader.object("Destination")) entry.destination = read_destination(*destination);
  if (entry.destination.size() == 0)
    reader.refuse(fmt::format("{} is missing, or has no recipients.", reader.called("Destination")));
  entry.labels = read_tags(reader, "ReplacementTags");
  entry.headers = read_headers(reader, "ReplacementHeaders");
  entry.data = "{}";
  if (auto content = reader.object("ReplacementEmailContent"))
    if (auto replacement = content->object("ReplacementTemplate"))
      entry.data = read_data(*replacement, "ReplacementTemplateData");
  return entry;
}

}  // namespace

Checked<mime::Address> parse_ses_address(std::string_view member, std::string_view text) {
  auto addresses = mime::parse_addresses(text);
  const bool one =
      addresses.size() == 1 && addresses[0].address.contains('@') && smtp::is_address(addresses[0].address);
  if (one) return std::move(addresses[0]);
  return invalid(
      fmt::format("{}: \"{}\" is not an email address; expected one as in \"Ann <ann@example.com>\".", member,
                  text.substr(0, 320)));
}

Checked<> check_ses_name(std::string_view member, std::string_view name) {
  if (!name.empty() && name.size() <= 64 && std::ranges::all_of(name, is_name_character)) return {};
  return invalid(
      fmt::format("{} must have 1 to 64 characters, which are letters, digits, '_' and '-'.", member));
}

Checked<SesEmail> parse_send_email(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  SesEmail email;
  auto content = reader.object("Content");
  const int kinds = content ? content->has("Simple") + content->has("Raw") + content->has("Template") : 0;
  if (kinds != 1) {
    reader.refuse("Content must have one of Simple, Raw and Template.");
    return std::unexpected(std::move(*mistake));
  }
  if (auto simple = content->object("Simple")) read_simple(*simple, email.draft);
  if (auto raw = content->object("Raw")) email.raw = read_blob(*raw, "Data");
  if (auto used = content->object("Template")) read_template(*used, email);
  email.labels = read_tags(reader, "EmailTags");
  read_common(reader, email);
  if (auto destination = reader.object("Destination")) email.destination = read_destination(*destination);
  if (email.destination.size() == 0 && !email.raw)
    reader.refuse("Destination is missing, or has no recipients.");
  return unless(mistake, std::move(email));
}

Checked<SesBulk> parse_send_bulk_email(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  SesBulk bulk;
  auto content = reader.object("DefaultContent");
  if (content && content->has("Template"))
    read_template(*content->object("Template"), bulk.email);
  else
    reader.refuse("DefaultContent.Template is missing.");
  bulk.email.labels = read_tags(reader, "DefaultEmailTags");
  read_common(reader, bulk.email);
  const auto entries = reader.list("BulkEmailEntries", kSesMostEntries);
  if (entries.empty()) reader.refuse("BulkEmailEntries is missing, or empty.");
  for (const auto value : entries) {
    Mistake in_entry;
    auto entry =
        read_entry(SesReader(value, fmt::format("BulkEmailEntries[{}].", bulk.entries.size()), in_entry));
    bulk.entries.push_back(unless(in_entry, std::move(entry)));
  }
  return unless(mistake, std::move(bulk));
}

Checked<EmailTemplate> parse_update_email_template(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  EmailTemplate email_template;
  if (auto content = reader.object("TemplateContent"))
    email_template = read_template_content(*content);
  else
    reader.refuse("TemplateContent is missing.");
  return unless(mistake, std::move(email_template));
}

Checked<EmailTemplate> parse_create_email_template(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  std::string name(reader.required_text("TemplateName"));
  if (mistake) return std::unexpected(std::move(*mistake));
  TABELLA_TRY(check_ses_name("TemplateName", name));
  TABELLA_ASSIGN(auto email_template, parse_update_email_template(body));
  email_template.name = std::move(name);
  return email_template;
}

Checked<std::string> parse_test_render(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  reader.required_text("TemplateData");
  auto data = read_data(reader, "TemplateData");
  return unless(mistake, std::move(data));
}

Checked<Suppressed> parse_put_suppressed_destination(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  const auto address =
      reader.value_or_refuse(parse_ses_address("EmailAddress", reader.required_text("EmailAddress")));
  const auto reason = reader.required_text("Reason");
  if (reason != "BOUNCE" && reason != "COMPLAINT") reader.refuse("Reason must be BOUNCE or COMPLAINT.");
  return unless(mistake, Suppressed{.address = address.address, .reason = std::string(reason)});
}

// A set is a name. What would only measure or tag is taken and does nothing; what would keep mail from being
// sent, or from being sent in the clear, is refused rather than forgotten.
Checked<SesConfigurationSet> parse_create_configuration_set(JsonValue body) {
  Mistake mistake;
  SesReader reader(body, "", mistake);
  SesConfigurationSet set{.name = std::string(reader.required_text("ConfigurationSetName"))};
  if (auto checked = check_ses_name("ConfigurationSetName", set.name); !checked)
    reader.refuse(std::move(checked.error().message));
  if (auto sending = reader.object("SendingOptions"); sending && sending->flag("SendingEnabled") == false)
    reader.refuse(
        "SendingOptions.SendingEnabled cannot be false here: pause destinations with /outbox instead.");
  if (auto delivery = reader.object("DeliveryOptions"); delivery && delivery->text("TlsPolicy") == "REQUIRE")
    reader.refuse(
        "DeliveryOptions.TlsPolicy cannot be REQUIRE here: whether TLS is required is an option of the "
        "server.");
  return unless(mistake, std::move(set));
}

}  // namespace tabella::outbox

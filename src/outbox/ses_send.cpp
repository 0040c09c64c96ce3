// SendEmail and SendBulkEmail.
#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/utf8.h"
#include "outbox/rendering.h"
#include "outbox/ses.h"

namespace tabella::outbox {

using boost::asio::awaitable;

namespace {

// A message in base64, and JSON around it.
constexpr size_t kMostSendBody = kSesMostMessage / 3 * 4 + (1u << 20);

// Each once.
std::vector<std::string> envelope_recipients(const SesEmail& email) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::vector<mime::Address>& some) {
    for (const auto& one : some)
      if (std::ranges::find(addresses, one.address) == addresses.end()) addresses.push_back(one.address);
  };
  const auto& destination = email.destination;
  for (const auto* some : {&destination.to, &destination.cc, &destination.bcc}) add(*some);
  if (addresses.empty() && email.raw) add(mime::recipients_of(*email.raw, kSesMostRecipients));
  return addresses;
}

Checked<> check_sendable(const std::string& from, const Composed& composed,
                         const std::vector<std::string>& recipients, size_t max_size) {
  if (recipients.empty())
    return invalid("There are no recipients, neither in Destination nor in the message's To, Cc and Bcc.");
  if (recipients.size() > kSesMostRecipients)
    return invalid(fmt::format("The email has more than {} recipients: send several.", kSesMostRecipients));
  for (const auto& recipient : recipients)
    TABELLA_TRY(parse_ses_address("The message's recipient", recipient));
  if (composed.content.size() > max_size)
    return invalid(
        fmt::format("The message has {} bytes; it may have {}.", composed.content.size(), max_size));
  if (from.empty() && composed.from.empty())
    return invalid("FromEmailAddress is missing, and the message's From has no address.");
  return {};
}

// What one of a bulk is: that of all, with what is its own.
Checked<SesEmail> ses_email_of(const SesEmail& all, const SesBulkEntry& entry) {
  SesEmail email = all;
  email.destination = entry.destination;
  for (const auto& [name, value] : entry.labels) email.labels.insert_or_assign(name, value);
  std::erase_if(email.draft.headers, [&](const auto& header) {
    return std::ranges::any_of(entry.headers,
                               [&](const auto& own) { return net::same_header(own.first, header.first); });
  });
  email.draft.headers.insert(email.draft.headers.begin(), entry.headers.begin(), entry.headers.end());
  TABELLA_ASSIGN(email.with_template->data, merge_template_data(entry.data, all.with_template->data));
  return email;
}

// How an error of one email is told within a bulk.
std::string_view bulk_status(const SesError& error) {
  if (error.status == 429) return "ACCOUNT_THROTTLED";
  if (error.status >= 500) return "TRANSIENT_FAILURE";
  return "INVALID_PARAMETER";
}

}  // namespace

void SesApi::add_send_routes(Routes& routes) {
  routes.add(
      {.method = "POST",
       .path = "/v2/email/outbound-emails",
       .scope = "outbox:send",
       .summary = "SES: SendEmail",
       .body =
           R"({"FromEmailAddress": "a@example.com", "Destination": {"ToAddresses": ["b@example.com"]}, "Content": {"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hello."}}}}})",
       .max_body = kMostSendBody,
       .at_root = true},
      &SesApi::run<&SesApi::send_email>);
  routes.add(
      {.method = "POST",
       .path = "/v2/email/outbound-bulk-emails",
       .scope = "outbox:send",
       .summary = "SES: SendBulkEmail",
       .body =
           R"({"FromEmailAddress": "a@example.com", "DefaultContent": {"Template": {"TemplateName": "hello", "TemplateData": "{}"}}, "BulkEmailEntries": [{"Destination": {"ToAddresses": ["b@example.com"]}}]})",
       .max_body = kMostSendBody,
       .at_root = true},
      &SesApi::run<&SesApi::send_bulk_email>);
}

SesApi::Answer SesApi::send_email(Call& call) {
  TABELLA_CO_ASSIGN(auto email, co_await read(call, &parse_send_email));
  TABELLA_CO_TRY(co_await check_configuration_set(email.configuration_set));
  TABELLA_CO_TRY(co_await fill(call, email));
  TABELLA_CO_ASSIGN(const auto id, co_await send(std::move(email)));
  std::string json;
  JsonObjectWriter(json).string("MessageId", id);
  co_return json;
}

SesApi::Answer SesApi::send_bulk_email(Call& call) {
  TABELLA_CO_ASSIGN(auto bulk, co_await read(call, &parse_send_bulk_email));
  TABELLA_CO_ASSIGN(const auto all_fail, co_await prepare_bulk(bulk.email));
  auto* memory = call.request.unpacked;
  const auto counted = memory ? memory->size() : 0;
  std::string json;
  {
    JsonObjectWriter answer(json);
    JsonArrayWriter results(answer.key("BulkEmailEntryResults"));
    for (const auto& entry : bulk.entries) {
      JsonObjectWriter result(results.element());
      if (all_fail) {
        result.string("Status", all_fail->status);
        result.string("Error", all_fail->message);
        continue;
      }
      const auto sent = co_await send_entry(call, bulk.email, entry);
      if (memory) memory->resize(counted);  // one after the other
      result.string("Status", sent ? "SUCCESS" : bulk_status(sent.error()));
      result.string(sent ? "MessageId" : "Error", sent ? *sent : to_valid_utf8(sent.error().message));
    }
  }
  co_return json;
}

// Looks up once what all of them need; what is not there is told in the result of each.
awaitable<SesResult<std::optional<SesApi::BulkFailure>>> SesApi::prepare_bulk(SesEmail& all) {
  if (const auto set = co_await check_configuration_set(all.configuration_set); !set) {
    if (set.error().status != 404) co_return std::unexpected(set.error());
    co_return BulkFailure{.status = "CONFIGURATION_SET_NOT_FOUND", .message = set.error().message};
  }
  auto& used = *all.with_template;
  if (used.name.empty()) co_return std::nullopt;
  TABELLA_CO_ASSIGN(auto found, co_await outbox_.templates().find(used.name));
  if (!found)
    co_return BulkFailure{.status = "TEMPLATE_NOT_FOUND",
                          .message = ses_no_template(used.name).error().message};
  used.content = std::move(*found);
  used.name.clear();
  co_return std::nullopt;
}

SesApi::Answer SesApi::send_entry(Call& call, const SesEmail& all, const Checked<SesBulkEntry>& entry) {
  if (!entry) co_return std::unexpected(SesError(entry.error()));
  TABELLA_CO_ASSIGN(auto email, co_await long_work_.run([&] { return ses_email_of(all, *entry); }));
  TABELLA_CO_TRY(co_await fill(call, email));
  co_return co_await send(std::move(email));
}

awaitable<SesResult<void>> SesApi::check_configuration_set(const std::string& name) {
  if (name.empty()) co_return SesResult<void>{};
  TABELLA_CO_ASSIGN(const bool there, co_await sets_.exists(name));
  if (!there) co_return ses_no_configuration_set(name);
  co_return SesResult<void>{};
}

// Its template with its data, if it has one.
awaitable<SesResult<void>> SesApi::fill(Call& call, SesEmail& email) {
  if (!email.with_template) co_return SesResult<void>{};
  auto& used = *email.with_template;
  if (!used.name.empty()) {
    TABELLA_CO_ASSIGN(auto found, co_await outbox_.templates().find(used.name));
    if (!found) co_return ses_no_template(used.name);
    used.content = std::move(*found);
  }
  const auto work = [&]() -> SesResult<void> {
    auto& draft = email.draft;
    TABELLA_TRY(render_into(draft, used.content, used.data, max_size_));
    return count_made(call, draft.subject.size() + (draft.text ? draft.text->size() : 0) +
                                (draft.html ? draft.html->size() : 0));
  };
  co_return co_await long_work_.run(work);
}

SesApi::Answer SesApi::send(SesEmail email) {
  const auto id = make_uuid();
  const auto recipients = co_await long_work_.run([&email] { return envelope_recipients(email); });
  const auto from = email.draft.from.address;
  email.draft.to = email.destination.to;
  email.draft.cc = email.destination.cc;
  Checked<Composed> made;
  if (email.raw)
    made = co_await composer_.complete(id, std::move(*email.raw));
  else
    made = co_await composer_.compose(id, std::move(email.draft));
  TABELLA_CO_ASSIGN(auto composed, std::move(made));
  TABELLA_CO_TRY(check_sendable(from, composed, recipients, max_size_));
  auto sender = !email.bounces_to.empty() ? email.bounces_to : !from.empty() ? from : composed.from;
  TABELLA_CO_ASSIGN(const auto accepted,
                    co_await outbox_.accept({.id = id,
                                             .door = "ses",
                                             .from = std::move(sender),
                                             .recipients = recipients,
                                             .content = std::move(composed.content),
                                             .subject = std::move(composed.subject),
                                             .message_id = std::move(composed.message_id),
                                             .labels = std::move(email.labels)}));
  co_return accepted.id;
}

}  // namespace tabella::outbox

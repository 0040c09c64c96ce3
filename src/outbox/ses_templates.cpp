// Email templates.
#include <fmt/format.h>

#include "outbox/rendering.h"
#include "outbox/ses.h"

namespace tabella::outbox {

namespace {

constexpr size_t kMostTemplateBody = 4u << 20;  // 500 KB, much of it escaped
constexpr size_t kMostTemplatesListed = 100;    // as SES

// The message that a template makes. It has no sender yet, and a message cannot be composed without one.
Checked<std::string> rendered_message(const EmailTemplate& email_template, const std::string& data,
                                      TimePoint now, size_t most) {
  constexpr std::string_view kNobody = "template@localhost";
  mime::Draft draft{.from = {.name = "", .address = std::string(kNobody)},
                    .message_id = mime::make_message_id("localhost"),
                    .date = now};
  TABELLA_TRY(render_into(draft, email_template, data, most));
  TABELLA_ASSIGN(auto message, mime::compose(draft));
  const auto from = fmt::format("From: {}\r\n", kNobody);
  if (const auto at = message.bytes.find(from); at != std::string::npos) message.bytes.erase(at, from.size());
  return std::move(message.bytes);
}

}  // namespace

void SesApi::add_template_routes(Routes& routes) {
  constexpr auto* kExample =
      R"({"TemplateContent": {"Subject": "Hello, {{name}}", "Text": "Hello, {{name}}."}})";
  routes.add(
      {.method = "POST",
       .path = "/v2/email/templates",
       .scope = "outbox:write",
       .summary = "SES: CreateEmailTemplate",
       .body =
           R"({"TemplateName": "hello", "TemplateContent": {"Subject": "Hello, {{name}}", "Text": "Hello, {{name}}."}})",
       .max_body = kMostTemplateBody,
       .at_root = true},
      &SesApi::run<&SesApi::create_email_template>);
  routes.add({.method = "GET",
              .path = "/v2/email/templates",
              .scope = "outbox:read",
              .summary = "SES: ListEmailTemplates",
              .query = {{"PageSize", "how many at most, up to 100"}, {"NextToken", "of the page before"}},
              .at_root = true},
             &SesApi::run<&SesApi::list_email_templates>);
  routes.add({.method = "GET",
              .path = "/v2/email/templates/{TemplateName}",
              .scope = "outbox:read",
              .summary = "SES: GetEmailTemplate",
              .at_root = true},
             &SesApi::run<&SesApi::get_email_template>);
  routes.add({.method = "PUT",
              .path = "/v2/email/templates/{TemplateName}",
              .scope = "outbox:write",
              .summary = "SES: UpdateEmailTemplate",
              .body = kExample,
              .max_body = kMostTemplateBody,
              .at_root = true},
             &SesApi::run<&SesApi::update_email_template>);
  routes.add({.method = "DELETE",
              .path = "/v2/email/templates/{TemplateName}",
              .scope = "outbox:write",
              .summary = "SES: DeleteEmailTemplate",
              .at_root = true},
             &SesApi::run<&SesApi::delete_email_template>);
  routes.add({.method = "POST",
              .path = "/v2/email/templates/{TemplateName}/render",
              .scope = "outbox:read",
              .summary = "SES: TestRenderEmailTemplate",
              .body = R"({"TemplateData": "{\"name\": \"Ann\"}"})",
              .at_root = true},
             &SesApi::run<&SesApi::test_render_email_template>);
}

SesApi::Answer SesApi::create_email_template(Call& call) {
  TABELLA_CO_ASSIGN(auto made, co_await read(call, &parse_create_email_template));
  TABELLA_CO_TRY(co_await long_work_.run([&made] { return check_template(made); }));
  const auto name = made.name;
  TABELLA_CO_ASSIGN(const bool created, co_await outbox_.templates().create(std::move(made)));
  if (!created) co_return ses_already_exists(fmt::format("Template {} already exists.", name));
  co_return "{}";
}

SesApi::Answer SesApi::update_email_template(Call& call) {
  TABELLA_CO_ASSIGN(auto changed, co_await read(call, &parse_update_email_template));
  changed.name = call.path("TemplateName");
  TABELLA_CO_TRY(check_ses_name("TemplateName", changed.name));
  TABELLA_CO_TRY(co_await long_work_.run([&changed] { return check_template(changed); }));
  TABELLA_CO_ASSIGN(const bool there, co_await outbox_.templates().update(std::move(changed)));
  if (!there) co_return ses_no_template(call.path("TemplateName"));
  co_return "{}";
}

SesApi::Answer SesApi::get_email_template(Call& call) {
  const auto& name = call.path("TemplateName");
  TABELLA_CO_TRY(check_ses_name("TemplateName", name));
  TABELLA_CO_ASSIGN(const auto found, co_await outbox_.templates().find(name));
  if (!found) co_return ses_no_template(name);
  std::string json;
  {
    JsonObjectWriter answer(json);
    answer.string("TemplateName", found->name);
    JsonObjectWriter content(answer.key("TemplateContent"));
    content.string("Subject", found->subject);
    if (found->text) content.string("Text", *found->text);
    if (found->html) content.string("Html", *found->html);
  }
  co_return json;
}

SesApi::Answer SesApi::delete_email_template(Call& call) {
  const auto& name = call.path("TemplateName");
  TABELLA_CO_TRY(check_ses_name("TemplateName", name));
  TABELLA_CO_ASSIGN(const bool there, co_await outbox_.templates().remove(name));
  if (!there) co_return ses_no_template(name);
  co_return "{}";
}

SesApi::Answer SesApi::list_email_templates(Call& call) {
  TABELLA_CO_ASSIGN(const auto limit, page_size(call, kMostTemplatesListed));
  TABELLA_CO_ASSIGN(const auto page, co_await outbox_.templates().list(limit, call.text("NextToken")));
  std::string json;
  {
    JsonObjectWriter answer(json);
    {
      JsonArrayWriter list(answer.key("TemplatesMetadata"));
      for (const auto& one : page.templates) {
        JsonObjectWriter metadata(list.element());
        metadata.string("TemplateName", one.name);
        metadata.number("CreatedTimestamp", epoch_seconds(one.created));
      }
    }
    if (!page.next.empty()) answer.string("NextToken", page.next);
  }
  co_return json;
}

SesApi::Answer SesApi::test_render_email_template(Call& call) {
  const auto& name = call.path("TemplateName");
  TABELLA_CO_TRY(check_ses_name("TemplateName", name));
  TABELLA_CO_ASSIGN(const auto data, co_await read(call, &parse_test_render));
  TABELLA_CO_ASSIGN(const auto found, co_await outbox_.templates().find(name));
  if (!found) co_return ses_no_template(name);
  const auto now = outbox_.clock().now();
  const auto work = [&]() -> SesResult<std::string> {
    TABELLA_ASSIGN(auto rendered, rendered_message(*found, data, now, max_size_));
    TABELLA_TRY(count_made(call, rendered.size()));
    return rendered;
  };
  TABELLA_CO_ASSIGN(const auto message, co_await long_work_.run(work));
  std::string json;
  JsonObjectWriter(json).string("RenderedTemplate", message);
  co_return json;
}

}  // namespace tabella::outbox

#include "outbox/rendering.h"

#include <fmt/format.h>

#include "base/json.h"
#include "outbox/template.h"

namespace tabella::outbox {

namespace {

constexpr size_t kLargestPart = 20u << 20;  // that a template may grow to

Checked<std::string> render_part(std::string_view what, std::string_view text, JsonValue data,
                                 Escape escape) {
  auto parsed = Template::parse(text);
  if (!parsed) return invalid(fmt::format("{}: {}", what, parsed.error().message));
  return parsed->render(data, escape, kLargestPart);
}

}  // namespace

Checked<RenderedEmail> render(const EmailTemplate& email_template, std::string_view data) {
  JsonDocument document;
  const auto value = document.parse(data);
  if (!value || !value->is_object()) return invalid("the template's data is no JSON object");
  RenderedEmail rendered;
  TABELLA_ASSIGN(rendered.subject, render_part("the subject", email_template.subject, *value, Escape::none));
  if (email_template.text) {
    TABELLA_ASSIGN(rendered.text, render_part("the text part", *email_template.text, *value, Escape::none));
  }
  if (email_template.html) {
    TABELLA_ASSIGN(rendered.html, render_part("the HTML part", *email_template.html, *value, Escape::html));
  }
  return rendered;
}

store::Async<void> render(Templates& templates, Payload& payload) {
  if (payload.template_name.empty()) co_return store::Result<>{};
  TABELLA_CO_ASSIGN(const auto found, co_await templates.find(payload.template_name));
  if (!found) co_return store::refuse(fmt::format("there is no template '{}'", payload.template_name));
  auto rendered = render(*found, payload.template_data);
  if (!rendered) co_return store::refuse(rendered.error().message);
  if (payload.draft.subject.empty()) payload.draft.subject = std::move(rendered->subject);
  if (rendered->text) payload.draft.text = std::move(rendered->text);
  if (rendered->html) payload.draft.html = std::move(rendered->html);
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

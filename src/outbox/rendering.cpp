#include "outbox/rendering.h"

#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "handlebars/template.h"

namespace tabella::outbox {

namespace {

std::unexpected<Invalid> wrong_part(std::string_view part, const Invalid& why) {
  return invalid(fmt::format("The template's {}: {}", part, why.message));
}

Checked<std::string> render_part(std::string_view part, std::string_view text, JsonValue data, size_t most) {
  const auto parsed = handlebars::Template::parse(text);
  if (!parsed) return wrong_part(part, parsed.error());
  auto rendered = parsed->render(data, most);
  if (!rendered) return wrong_part(part, rendered.error());
  return rendered;
}

Checked<> check_part(std::string_view part, std::string_view text) {
  if (const auto parsed = handlebars::Template::parse(text); !parsed) return wrong_part(part, parsed.error());
  return {};
}

// Of the members that are there: null counts as absent.
std::set<std::string_view> keys_of(JsonValue object) {
  std::set<std::string_view> keys;
  for (JsonElements each(object); each.next();)
    if (each.value().kind() != JsonValue::Kind::null) keys.insert(each.key());
  return keys;
}

}  // namespace

Checked<std::string> merge_template_data(std::string_view first, std::string_view second) {
  JsonDocument first_document, second_document;
  const auto before = first_document.parse(first);
  const auto behind = second_document.parse(second);
  if (!before || !before->is_object() || !behind || !behind->is_object())
    return invalid("The data of a template must be a JSON object.");
  const auto own = keys_of(*before);
  const auto others = keys_of(*behind);
  std::string merged;
  {
    JsonObjectWriter object(merged);
    for (JsonElements each(*before); each.next();)
      if (own.contains(each.key()) || !others.contains(each.key()))
        append_json(object.key(each.key()), each.value());
    for (JsonElements each(*behind); each.next();)
      if (!own.contains(each.key())) append_json(object.key(each.key()), each.value());
  }
  return merged;
}

Checked<> render_into(mime::Draft& draft, const EmailTemplate& email_template, std::string_view data,
                      size_t most) {
  JsonDocument document;
  const auto value = document.parse(data);
  if (!value || !value->is_object()) return invalid("The data of a template must be a JSON object.");
  TABELLA_ASSIGN(draft.subject, render_part("subject", email_template.subject, *value, most));
  if (email_template.text) {
    TABELLA_ASSIGN(draft.text, render_part("text", *email_template.text, *value, most));
  }
  if (email_template.html) {
    TABELLA_ASSIGN(draft.html, render_part("HTML", *email_template.html, *value, most));
  }
  return {};
}

Checked<> check_template(const EmailTemplate& email_template) {
  TABELLA_TRY(check_part("subject", email_template.subject));
  if (email_template.text) TABELLA_TRY(check_part("text", *email_template.text));
  if (email_template.html) TABELLA_TRY(check_part("HTML", *email_template.html));
  return {};
}

store::Async<void> render(Templates& templates, Payload& payload, store::LongWork long_work) {
  if (payload.template_name.empty()) co_return store::Result<>{};
  TABELLA_CO_ASSIGN(const auto found, co_await templates.find(payload.template_name));
  if (!found) co_return store::refuse(fmt::format("there is no template '{}'", payload.template_name));
  const auto subject = payload.draft.subject;
  const auto rendered =
      co_await long_work.run([&] { return render_into(payload.draft, *found, payload.template_data); });
  if (!rendered) co_return store::refuse(rendered.error().message);
  if (!subject.empty()) payload.draft.subject = subject;
  co_return store::Result<>{};
}

}  // namespace tabella::outbox

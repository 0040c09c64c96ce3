// SES's templates: filled with data, which may come in two parts.

#include <fmt/format.h>

#include "outbox/ses_requests.h"
#include "outbox/template.h"

namespace tabella::outbox {

namespace {

// simdjson goes no deeper than 1024.
void append_value(std::string& out, JsonValue value) {
  switch (value.kind()) {
    case JsonValue::Kind::null: out += "null"; break;
    case JsonValue::Kind::boolean: out += value.boolean() ? "true" : "false"; break;
    case JsonValue::Kind::integer: out += std::to_string(value.integer()); break;
    case JsonValue::Kind::real: fmt::format_to(std::back_inserter(out), "{}", value.real()); break;
    case JsonValue::Kind::string: append_json_string(out, value.string()); break;
    case JsonValue::Kind::array: {
      JsonArrayWriter list(out);
      for (JsonElements each(value); each.next();) append_value(list.element(), each.value());
      break;
    }
    case JsonValue::Kind::object: {
      JsonObjectWriter object(out);
      for (JsonElements each(value); each.next();) append_value(object.key(each.key()), each.value());
      break;
    }
  }
}

std::unexpected<Invalid> wrong_part(std::string_view part, const Invalid& why) {
  return invalid(fmt::format("The template's {}: {}", part, why.message));
}

Checked<std::string> render_part(std::string_view part, std::string_view text, JsonValue data) {
  const auto parsed = Template::parse(text);
  if (!parsed) return wrong_part(part, parsed.error());
  auto rendered = parsed->render(data, Escape::none, kSesMostMessage);
  if (!rendered) return wrong_part(part, rendered.error());
  return rendered;
}

Checked<> check_part(std::string_view part, std::string_view text) {
  if (const auto parsed = Template::parse(text); !parsed) return wrong_part(part, parsed.error());
  return {};
}

}  // namespace

Checked<std::string> merge_template_data(std::string_view first, std::string_view second) {
  JsonDocument first_document, second_document;
  const auto before = first_document.parse(first);
  const auto behind = second_document.parse(second);
  if (!before || !before->is_object() || !behind || !behind->is_object())
    return invalid("The data of a template must be a JSON object.");
  std::string merged;
  {
    JsonObjectWriter object(merged);
    for (JsonElements each(*before); each.next();)
      if (before->find(each.key()) || !behind->find(each.key()))  // null counts as absent
        append_value(object.key(each.key()), each.value());
    for (JsonElements each(*behind); each.next();)
      if (!before->find(each.key())) append_value(object.key(each.key()), each.value());
  }
  return merged;
}

Checked<> render_into(mime::Draft& draft, const EmailTemplate& email_template, std::string_view data) {
  JsonDocument document;
  const auto value = document.parse(data);
  if (!value || !value->is_object()) return invalid("The data of a template must be a JSON object.");
  TABELLA_ASSIGN(draft.subject, render_part("subject", email_template.subject, *value));
  if (email_template.text) {
    TABELLA_ASSIGN(draft.text, render_part("text", *email_template.text, *value));
  }
  if (email_template.html) {
    TABELLA_ASSIGN(draft.html, render_part("HTML", *email_template.html, *value));
  }
  return {};
}

Checked<> check_template(const EmailTemplate& email_template) {
  TABELLA_TRY(check_part("subject", email_template.subject));
  if (email_template.text) TABELLA_TRY(check_part("text", *email_template.text));
  if (email_template.html) TABELLA_TRY(check_part("HTML", *email_template.html));
  return {};
}

}  // namespace tabella::outbox

// Templates put into emails.
#pragma once

#include "outbox/payload.h"
#include "outbox/templates.h"

namespace tabella::outbox {

// The parts of a template with the data in them.
struct RenderedEmail {
  std::string subject;
  std::optional<std::string> text;
  std::optional<std::string> html;
};
// `data` is a JSON object, as text. A sentence, in SES's words, if something is missing or cannot be read.
Checked<RenderedEmail> render(const EmailTemplate& email_template, std::string_view data);

// Puts the payload's template, if it has one, into its draft. An error of the kind validation is the
// sender's.
store::Async<void> render(Templates& templates, Payload& payload);

}  // namespace tabella::outbox

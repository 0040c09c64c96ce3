// Templates of emails, filled with data.
//
// As SES has it, what is put into the HTML part is not escaped (handlebars/template.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "mime/compose.h"
#include "outbox/payload.h"
#include "outbox/templates.h"
#include "store/long_work.h"

namespace tabella::outbox {

inline constexpr size_t kMostRendered = 40u << 20;  // that a part may grow to

// Two JSON objects in one: the members of `first`, and those of `second` that it has not.
Checked<std::string> merge_template_data(std::string_view first, std::string_view second);

// A template filled with data, a JSON object, into the draft's subject and bodies. A sentence, in SES's
// words, if something is missing or cannot be read, or a part would be longer than `most` bytes.
Checked<> render_into(mime::Draft& draft, const EmailTemplate& email_template, std::string_view data,
                      size_t most = kMostRendered);
// Whether it can be read at all.
Checked<> check_template(const EmailTemplate& email_template);

// Puts the payload's template, if it has one, into its draft. An error of the kind validation is the
// sender's. Filling it may take long.
store::Async<void> render(Templates& templates, Payload& payload, store::LongWork long_work = {});

}  // namespace tabella::outbox

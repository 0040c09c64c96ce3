// The search syntax, Mailpit's and a little more:
//
//   words "a phrase"  from: to: cc: bcc: reply-to: addressed: subject: message-id: attachment:
//   tag: inbox:  is:read is:unread is:tagged  has:attachment has:inline  before: after:  larger: smaller:
//
// All must hold; - or ! in front turns one around.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "search/snapshot.h"

namespace tabella::mail {

using search::Filter;

// A sentence if it cannot be understood. `now`: what "2h" in before: and after: counts back from.
std::expected<Filter, std::string> parse_query(std::string_view text, TimePoint now);

// MailHog's: kind is "from", "to" or "containing". Nothing for another one.
std::optional<Filter> mailhog_query(std::string_view kind, std::string_view text);

}  // namespace tabella::mail

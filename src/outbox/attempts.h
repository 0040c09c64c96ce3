// What attempts say of an email.
#pragma once

#include <string>
#include <string_view>

#include "outbox/message.h"
#include "smtp/connection.h"

namespace tabella::outbox {

// "delivered", "deferred", "failed" or "unknown".
std::string_view outcome_name(smtp::Outcome::Kind kind);
std::string worst_of(const std::vector<AttemptResult>& results);

// How much of a reply is kept: a row has room for all of them.
std::string kept_reply(std::string reply, size_t recipients);

// Whether somebody answered at all.
bool has_reached(const Attempt& attempt);

// An attempt that nobody has written down: its process died in the middle of it.
Attempt lost_attempt(const Message& message, std::string worker, TimePoint began, TimePoint now);

}  // namespace tabella::outbox

// A message in a few words, as JSON: for lists, webhooks and assertions.
#pragma once

#include <string>

#include "base/json.h"
#include "mail/model.h"
#include "mime/message.h"

namespace tabella::mail {

void append_summary_json(std::string& out, const Message& message);

// The members of a summary, for objects that have more.
void write_summary(JsonObjectWriter& object, const Message& message, const mime::Message& parsed);
void append_addresses(std::string& out, const std::vector<mime::Address>& addresses);

// How the text begins, in one line.
std::string snippet(const mime::Message& parsed);

}  // namespace tabella::mail

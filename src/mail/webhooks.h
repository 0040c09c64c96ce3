// What webhooks are told of messages, and which of them.
#pragma once

#include <string>

#include "mail/service.h"
#include "webhook/hooks.h"

namespace tabella::mail {

// The message with that id, if it is one that the hook's query finds: {"type": "message.received", …}.
store::Async<webhook::Rendered> render_for_webhook(Mail& mail, const webhook::Hook& hook, std::string id);

}  // namespace tabella::mail

// The JSON that an email is composed from, as the intake's payload files and POST /outbox/emails have it:
//
//   {"id": "…", "from": "Ann <ann@example.com>", "reply_to": "…", "to": ["…"], "cc": […], "bcc": […],
//    "subject": "…", "body_text": "…", "body_html": "…",
//    "attachments": ["https://…/a.pdf", {"path": "a.pdf", "name": "…"}, {"uri": "…", "name": "…"},
//                    {"name": "…", "content": "base64", "content_type": "…", "content_id": "…"}],
//    "custom_headers": {"X-Order": "17"},
//    "template": {"name": "…", "data": {…}}, "send_at": "2026-12-01T08:00:00Z", "priority": "high",
//    "callback_url": "https://…", "labels": {"campaign": "…"}, "envelope_from": "…"}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "mime/compose.h"
#include "outbox/message.h"

namespace tabella::outbox {

// An attachment that has still to be got.
struct PayloadAttachment {
  std::string uri = {};   // or
  std::string path = {};  // in the outbox's folder
  mime::Attachment attachment = {};
};

struct Payload {
  std::string id = {};
  mime::Draft draft = {};
  std::string envelope_from = {};            // empty: the draft's
  std::vector<std::string> recipients = {};  // to, cc and bcc
  std::vector<PayloadAttachment> elsewhere = {};
  std::string template_name = {};
  std::string template_data = {};  // JSON
  std::map<std::string, std::string> labels = {};
  Priority priority = Priority::normal;
  std::optional<TimePoint> send_at = {};
  std::string callback = {};
};

// A sentence for the sender if something is wrong with it.
Checked<Payload> parse_payload(JsonValue value);

}  // namespace tabella::outbox

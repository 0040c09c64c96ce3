// Messages as they are handed to the next hop: composed from their parts, or somebody else's made complete.
//
// A Draft is plain data, and all functions may be called from any thread. Texts come from strangers: whatever
// could make one header into two is refused with a sentence that names the field.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "mime/header.h"

namespace tabella::mime {

struct Attachment {
  std::string name;          // of the file; may be empty
  std::string content_type;  // with or without parameters; empty: application/octet-stream
  std::string content_id;    // without brackets; not empty: the HTML shows it as cid:…
  std::string bytes;
  std::string description = {};
  // "attachment" or "inline". Empty: inline if it has a content id, else attachment.
  std::string disposition = {};
};

struct Draft {
  Address from;
  std::vector<Address> reply_to, to, cc;  // Bcc is for the envelope and is never written
  std::string subject;
  std::optional<std::string> text, html;  // UTF-8; lines may end as they like
  std::vector<Attachment> attachments;
  // Others, as their sender wants them. Those that are written from the fields above, that say how the body
  // is built (Content-…), or that only servers on the way write (Received, DKIM-Signature, …) are refused.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string message_id;  // without brackets; make_message_id
  TimePoint date;
};

// A message with CR LF at the end of each line, and what the next hop must be able to take.
struct Prepared {
  std::string bytes;
  bool needs_utf8 = false;  // SMTPUTF8: there is UTF-8 in its headers (addresses; all else is encoded)
  bool needs_8bit = false;  // 8BITMIME: its body is not ASCII
};

// unique@host.
std::string make_message_id(std::string_view host);

Checked<Prepared> compose(const Draft& draft);

// Of a message without them.
struct Defaults {
  std::string message_id;
  TimePoint date;
};

// What a submission server does to a message (RFC 6409): adds Message-ID and Date where they are missing,
// takes Bcc out, and ends each line with CR LF. All else stays as it is, byte for byte. Nobody can add a
// From: without one it is refused.
Checked<Prepared> complete(std::string_view raw, const Defaults& defaults);

// Everybody in To, Cc and Bcc, each address once. Stops once there are more than `most`.
std::vector<Address> recipients_of(std::string_view raw, size_t most = std::numeric_limits<size_t>::max());

}  // namespace tabella::mime

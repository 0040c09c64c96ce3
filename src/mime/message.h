// A message's MIME structure, decoded: whatever the bytes are, there is a Message to look at, in time that
// grows with their number and no faster.
//
// Our own and not GMime's: that one overflows the stack on a To header of nested groups, takes tens of
// seconds for some headers of half a megabyte, and drops every second of certain encoded words. The tests
// named Hostile hold what this one does instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mime/header.h"

namespace tabella::mime {

// A part that holds something: leaves only, in the order of the message.
struct Part {
  std::string content_type;  // "text/plain", in lower case
  std::string charset;
  std::string filename;     // decoded; may be empty
  std::string content_id;   // without its brackets
  std::string disposition;  // "attachment", "inline" or whatever it says; may be empty
  std::string encoding;     // "base64", "quoted-printable", …, in lower case
  std::vector<Header> headers;
  std::string_view source;  // as it stands in the message, encoded; borrows from it

  bool is_text() const { return content_type.starts_with("text/"); }
  bool is_attachment() const;
  // Decoded bytes.
  std::string content() const;
  // Of a text: decoded, in UTF-8.
  std::string text() const;
  // The same of no more than so many of its encoded bytes: how it begins.
  std::string text_within(size_t most) const;
  // Roughly, without decoding it.
  size_t size() const;
};

// Borrows from the bytes it was made of.
struct Message {
  std::vector<Header> headers;
  std::vector<Address> from, to, cc, bcc, reply_to;
  std::string subject;
  std::string message_id;
  std::optional<int64_t> date;  // seconds since 1970
  std::vector<Part> parts;
  bool cut_short = false;  // there are more parts than anybody looks at, or they are nested too deep

  // The first of its kind that is no attachment; null if there is none.
  const Part* text() const { return first("text/plain"); }
  const Part* html() const { return first("text/html"); }
  size_t attachments() const;

 private:
  const Part* first(std::string_view content_type) const;
};

Message parse(std::string_view bytes);

}  // namespace tabella::mime

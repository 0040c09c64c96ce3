// Header fields as they are written: folded, with encoded words (RFC 2047) and parameters (RFC 2231) where
// ASCII does not do. What comes in is text from strangers: a control character in it, with which a field
// could be made into two, is refused and never left out in silence.
//
// All of them are plain functions, safe on any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "mime/header.h"

namespace tabella::mime {

// RFC 5322's ftext: what the name of a field is made of, at most 126 of it.
bool is_field_name(std::string_view name);

// Refuses what is not UTF-8, and control characters: "Subject must not hold control characters."
Checked<> check_text(std::string_view what, std::string_view text);

// mailbox@domain that can stand in a header as it is. UTF-8 is allowed in both (RFC 6532).
bool is_mailbox(std::string_view address);

// A whole field with its CR LF: "Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n". Lines are of 76 characters where
// there are blanks to fold at, and never longer than RFC 5322's 998.
Checked<std::string> text_field(std::string_view name, std::string_view text);

// "To: Jane <j@x.org>, "Doe, J." <d@x.org>\r\n".
Checked<std::string> address_field(std::string_view name, std::span<const Address> addresses);

// "Content-Disposition: attachment; filename*=UTF-8''%E2%82%AC.pdf\r\n".
class ParameterField {
 public:
  ParameterField(std::string_view name, std::string_view value);
  // The value has been checked. Quoted, or by RFC 2231 if ASCII does not do, in pieces if it is long.
  ParameterField& parameter(std::string_view name, std::string_view value);
  // By an encoded word in quotes if ASCII does not do. RFC 2047 forbids it, and yet it is how programs that
  // know nothing of RFC 2231 learn the name of an attachment: for Content-Type's name, beside a proper
  // filename.
  ParameterField& old_parameter(std::string_view name, std::string_view value);
  std::string text() const { return text_ + "\r\n"; }

 private:
  void add(std::string_view parameter);

  std::string text_;
  size_t line_ = 0;  // where its last line begins
};

// "Wed, 31 Jul 2019 11:22:56 +0000".
std::string date_text(TimePoint time);

}  // namespace tabella::mime

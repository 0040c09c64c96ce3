// Content-Transfer-Encodings: undone as far as the bytes allow, and done as RFC 2045 has them.
#pragma once

#include <string>
#include <string_view>

namespace tabella::mime {

// Skips what does not belong, and goes on after padding: some programs encode in pieces.
std::string decode_base64(std::string_view text);

std::string decode_quoted_printable(std::string_view text);

// By the name of the encoding; others come back as they are.
std::string decode(std::string_view text, std::string_view encoding);

// In lines of 76 characters, each ended by CR LF.
std::string encode_base64(std::string_view bytes);

// Lines of `text` end with CR LF, and stay lines; none is longer than 76 characters.
std::string encode_quoted_printable(std::string_view text);

}  // namespace tabella::mime

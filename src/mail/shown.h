// A message as it is shown to people and handed out to browsers: its text, its HTML made harmless, and the
// headers of what is downloaded.
#pragma once

#include <string>
#include <string_view>

#include "mime/message.h"

namespace tabella::mail {

// What a reader sees: the plain text, or else that of the HTML. No more than `most` encoded bytes are read.
std::string shown_text(const mime::Message& parsed, size_t most = std::string::npos);

// The HTML of the message, cleaned, with the pictures that it refers to in it: a sandboxed page has no
// credentials to fetch them with. Empty, if there is no HTML.
std::string shown_html(const mime::Message& parsed);

// Pictures that can do nothing but be looked at.
bool is_picture(std::string_view content_type);

// A Content-Type with its charset, if it has one; for what has none, bytes.
std::string download_type(std::string_view content_type, std::string_view charset);
// What of a text may stand in a header, also between quotes.
std::string header_text(std::string_view text);

}  // namespace tabella::mail

// HTML from strangers: its text, and a form of it that can be shown.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tabella::mime {

// What a reader would see, and what the links point to, one blank between words.
std::string html_to_text(std::string_view html);

// The URL of the part with that Content-ID; empty: there is none.
using PartUrl = std::function<std::string(std::string_view content_id)>;

// The same document with nothing in it that runs, loads, posts or leads anywhere by itself. It is built anew
// from a list of what is harmless: what is not on it does not come through.
std::string clean_html(std::string_view html, const PartUrl& part_url);

// For putting text into HTML, between tags or into quotes.
std::string escape_html(std::string_view text);

}  // namespace tabella::mime

#pragma once

#include <string>
#include <string_view>

namespace tabella {

// Appends `text` as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

// The same without the quotes: for a string that is written piece by piece.
void append_json_text(std::string& out, std::string_view text);

}  // namespace tabella

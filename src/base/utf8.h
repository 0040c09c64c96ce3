#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tabella {

// How much of it, from the front, is valid UTF-8.
size_t valid_utf8_length(std::string_view bytes);

inline bool is_valid_utf8(std::string_view bytes) { return valid_utf8_length(bytes) == bytes.size(); }

// The front of a text, of so many bytes at most, and no half of a character.
inline std::string_view utf8_front(std::string_view text, size_t most) {
  text = text.substr(0, most);
  return text.substr(0, valid_utf8_length(text));
}

// With U+FFFD for each byte that is none.
std::string to_valid_utf8(std::string_view bytes);

void append_utf8(std::string& out, uint32_t character);

}  // namespace tabella

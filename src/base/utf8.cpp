#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace tabella {
namespace {

// The length of the valid character at the front; 0: there is none.
size_t character_length(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const auto follows = [&](size_t i) { return i < bytes.size() && (at(i) & 0xc0) == 0x80; };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xe0 && at(1) < 0xa0) return 0;
    if (first == 0xed && at(1) >= 0xa0) return 0;
    return 3;
  }
  if (first >= 0xf0 && first < 0xf5) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xf0 && at(1) < 0x90) return 0;
    if (first == 0xf4 && at(1) >= 0x90) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

// Mostly ASCII: eight bytes at a time.
size_t valid_utf8_length(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    uint64_t word = 0;
    while (i + 8 <= bytes.size()) {
      std::memcpy(&word, bytes.data() + i, 8);
      if (word & 0x8080808080808080u) break;
      i += 8;
    }
    if (i == bytes.size()) break;
    const auto length = character_length(bytes.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return i;
}

void append_utf8(std::string& out, uint32_t c) {
  const auto more = [&](int shift) { out.push_back(static_cast<char>(0x80 | (c >> shift & 0x3f))); };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | c >> 6));
    more(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | c >> 12));
    more(6);
    more(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | c >> 18));
    more(12);
    more(6);
    more(0);
  }
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string result;
  while (true) {
    const auto valid = valid_utf8_length(bytes);
    result.append(bytes.substr(0, valid));
    if (valid == bytes.size()) return result;
    result.append("\xEF\xBF\xBD");
    bytes.remove_prefix(valid + 1);
  }
}

}  // namespace tabella

#include "base/substring.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace tabella {
namespace {

// The C library's own search is linear from here on (two-way); below, it may compare the whole part at every
// place.
constexpr size_t kTwoWayFrom = 257;
// Too short for comparing it everywhere to cost much.
constexpr size_t kShort = 8;

// Knuth, Morris and Pratt's: never looks at a byte of the text again.
bool has_medium(std::string_view text, std::string_view part) {
  std::array<uint16_t, kTwoWayFrom> border;  // NOLINT: filled as far as it is read
  border[0] = 0;
  for (size_t i = 1, matched = 0; i < part.size(); ++i) {
    while (matched > 0 && part[i] != part[matched]) matched = border[matched - 1];
    if (part[i] == part[matched]) ++matched;
    border[i] = static_cast<uint16_t>(matched);
  }
  size_t matched = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (matched == 0) {  // nothing is lost by a jump to where it can begin
      const void* begin = std::memchr(text.data() + i, part[0], text.size() - i);
      if (!begin) return false;
      i = static_cast<size_t>(static_cast<const char*>(begin) - text.data());
    }
    while (matched > 0 && text[i] != part[matched]) matched = border[matched - 1];
    if (text[i] == part[matched]) ++matched;
    if (matched == part.size()) return true;
  }
  return false;
}

}  // namespace

bool has_substring(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return false;
  if (part.size() <= kShort) return text.find(part) != std::string_view::npos;
  if (part.size() < kTwoWayFrom) return has_medium(text, part);
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

}  // namespace tabella

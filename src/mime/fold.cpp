#include "mime/fold.h"

#include <cstdlib>

#include <utf8proc.h>

namespace tabella::mime {
namespace {

// Runs of blanks, tabs and line ends become one blank; capital letters small ones.
void append_ascii(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      if (out.empty() || out.back() != ' ') out.push_back(' ');
    } else {
      out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
    }
  }
}

void append_folded(std::string& out, std::string_view text) {
  constexpr auto kHow = static_cast<utf8proc_option_t>(
      UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_STRIPMARK | UTF8PROC_IGNORE);
  utf8proc_uint8_t* folded = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &folded, kHow);
  // Text that is no UTF-8 stays as it is.
  append_ascii(
      out, size < 0 ? text : std::string_view(reinterpret_cast<char*>(folded), static_cast<size_t>(size)));
  std::free(folded);  // NOLINT: utf8proc allocates so
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

std::string fold(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && is_ascii(text[end])) ++end;
    if (end == text.size()) {
      append_ascii(out, text);
      break;
    }
    // A letter and the accents behind it belong together.
    if (end > 0) append_ascii(out, text.substr(0, end - 1));
    const size_t begin = end > 0 ? end - 1 : 0;
    while (end < text.size() && !is_ascii(text[end])) ++end;
    append_folded(out, text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace tabella::mime

#include "mime/utf8.h"

#include <iconv.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include "base/text.h"

namespace tabella::mime {
namespace {

// Only what mail really uses goes to iconv: strangers choose these names, and its rarer corners have had
// holes.
std::string known_charset(std::string_view name) {
  static constexpr std::array<std::string_view, 24> kKnown = {
      "koi8-r",      "koi8-u",    "gb2312",   "gbk",    "gb18030", "big5",  "big5-hkscs", "euc-jp",
      "iso-2022-jp", "shift_jis", "sjis",     "cp932",  "euc-kr",  "cp949", "tis-620",    "macintosh",
      "utf-16",      "utf-16le",  "utf-16be", "utf-32", "utf-7",   "cp437", "cp850",      "cp866"};
  auto small = lower(name);
  if (small == "ks_c_5601-1987") return "cp949";
  if (small == "windows-31j" || small == "x-sjis") return "cp932";
  if (small == "windows-874") return "cp874";
  if (small == "iso-8859-8-i") return "iso-8859-8";
  if (std::ranges::find(kKnown, small) != kKnown.end()) return small;
  for (const std::string_view family : {"iso-8859-", "iso8859-", "windows-125", "cp125"})
    if (small.starts_with(family) && small.size() <= family.size() + 2) return small;
  if (small == "latin1") return "iso-8859-1";
  return {};
}

}  // namespace

std::string from_charset(std::string_view bytes, std::string_view charset) {
  const auto name = lower(charset);
  const bool plain =
      name.empty() || name == "utf-8" || name == "us-ascii" || name == "utf8" || name == "ascii";
  if (plain && is_valid_utf8(bytes)) return std::string(bytes);
  // Text that says nothing of its charset, and is not UTF-8, is most likely Western.
  const auto known = plain ? std::string("windows-1252") : known_charset(name);
  if (known.empty()) return to_valid_utf8(bytes);
  auto* converter = iconv_open("UTF-8", known.c_str());
  // NOLINTNEXTLINE(performance-no-int-to-ptr): iconv's way to say no
  if (converter == reinterpret_cast<iconv_t>(-1)) return to_valid_utf8(bytes);
  std::string result;
  char* in = const_cast<char*>(bytes.data());  // NOLINT: iconv does not write to it
  size_t left = bytes.size();
  std::array<char, 4096> out;  // NOLINT: filled by iconv
  while (left > 0) {
    char* to = out.data();
    size_t room = out.size();
    const auto done = iconv(converter, &in, &left, &to, &room);
    result.append(out.data(), out.size() - room);
    if (done == static_cast<size_t>(-1) && errno != E2BIG) {
      result.append("\xEF\xBF\xBD");
      ++in;
      --left;
    }
  }
  iconv_close(converter);
  return to_valid_utf8(result);
}

}  // namespace tabella::mime

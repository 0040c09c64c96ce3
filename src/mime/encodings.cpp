#include "mime/encodings.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/base64.h"
#include "base/text.h"

namespace tabella::mime {
namespace {

constexpr auto kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  return values;
}();

}  // namespace

std::string decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') {
      bits = 0;
      have = 0;
      continue;
    }
    const auto value = kValues[static_cast<uint8_t>(c)];
    if (value < 0) continue;
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out.push_back(static_cast<char>(bits >> have));
    }
  }
  return out;
}

std::string decode_quoted_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') {
      out.push_back(text[i]);
      continue;
    }
    // Blanks between the sign and the end of the line are noise.
    size_t end = i + 1;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\t')) ++end;
    if (end == text.size()) break;
    if (text[end] == '\n' || (text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n')) {
      i = text[end] == '\n' ? end : end + 1;
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      out.push_back(static_cast<char>(high << 4 | low));
      i += 2;
    } else {
      out.push_back('=');
    }
  }
  return out;
}

std::string decode(std::string_view text, std::string_view encoding) {
  if (encoding == "base64") return decode_base64(text);
  if (encoding == "quoted-printable") return decode_quoted_printable(text);
  return std::string(text);
}

std::string encode_base64(std::string_view bytes) {
  constexpr size_t kBytesInLine = 57;
  std::string out;
  out.reserve(bytes.size() / kBytesInLine * 78 + 80);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kBytesInLine, bytes.size()))) {
    append_base64(out, bytes.substr(0, kBytesInLine));
    out.append("\r\n");
  }
  return out;
}

std::string encode_quoted_printable(std::string_view text) {
  constexpr size_t kLongestEncodedLine = 76;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  size_t line = 0;  // where the line begins in `out`
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\r\n")) {
      out.append("\r\n");
      line = out.size();
      ++i;
      continue;
    }
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool ends_line = i + 1 == text.size() || text.substr(i + 1).starts_with("\r\n");
    // Blanks at the end of a line would be lost on the way.
    const bool plain =
        (byte > 0x20 && byte < 0x7f && byte != '=') || ((byte == ' ' || byte == '\t') && !ends_line);
    // The last column is for the '=' that says that the line goes on.
    if (out.size() - line + (plain ? 1 : 3) > kLongestEncodedLine - (ends_line ? 0 : 1)) {
      out.append("=\r\n");
      line = out.size();
    }
    if (plain)
      out.push_back(text[i]);
    else
      out.append({'=', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

}  // namespace tabella::mime

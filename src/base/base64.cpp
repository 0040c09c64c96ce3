#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tabella {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kBase64Digits = [] {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  for (size_t i = 0; i < kBase64Alphabet.size(); ++i)
    digits[static_cast<uint8_t>(kBase64Alphabet[i])] = static_cast<int8_t>(i);
  return digits;
}();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t v = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) out.push_back(kBase64Alphabet[v >> shift & 63]);
  }
  const size_t rest = bytes.size() - i;
  if (rest == 0) return;
  const uint32_t v = at(i) << 16 | (rest == 2 ? at(i + 1) << 8 : 0);
  out.push_back(kBase64Alphabet[v >> 18]);
  out.push_back(kBase64Alphabet[v >> 12 & 63]);
  out.push_back(rest == 2 ? kBase64Alphabet[v >> 6 & 63] : '=');
  out.push_back('=');
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  append_base64(out, bytes);
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const auto digits = text.substr(0, text.size() - padding);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : digits) {
    const int8_t digit = kBase64Digits[static_cast<uint8_t>(c)];
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) out.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  const bool canonical = (bits & ((1u << count) - 1)) == 0;
  return canonical ? std::optional(std::move(out)) : std::nullopt;
}

std::string to_base64url(std::string_view bytes) {
  auto text = to_base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  text.erase(std::ranges::find(text, '='), text.end());
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string padded(text);
  if (padded.find_first_of("+/=") != std::string::npos) return {};
  std::ranges::replace(padded, '-', '+');
  std::ranges::replace(padded, '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  return from_base64(padded);
}

}  // namespace tabella

#include "manhunt/links.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/text.h"

namespace tabella::manhunt {
namespace {

constexpr size_t kSignatureBytes = 18;
constexpr size_t kCodeLetters = 4;

std::string signature_of(const Search& search, const AttemptId& attempt, int64_t expires) {
  return to_base64url(
      hmac_sha256(search.nonce, fmt::format("link|{}|{}|{}", search.id, attempt.text(), expires))
          .substr(0, kSignatureBytes));
}

}  // namespace

std::string link_token(const Search& search, const AttemptId& attempt, TimePoint expires) {
  const auto seconds = epoch_milliseconds(expires) / 1000;
  return fmt::format("{}~{}~{:x}~{}", search.id, attempt.text(), seconds,
                     signature_of(search, attempt, seconds));
}

std::optional<LinkToken> parse_link_token(std::string_view token) {
  const auto parts = split(token, '~');
  if (parts.size() != 4) return std::nullopt;
  const auto attempt = AttemptId::parse(parts[1]);
  if (!is_search_id(parts[0])) return std::nullopt;
  int64_t seconds = 0;
  const auto* const end = parts[2].data() + parts[2].size();
  const auto [read, error] = std::from_chars(parts[2].data(), end, seconds, 16);
  if (!attempt || error != std::errc{} || read != end || seconds < 0 || seconds > int64_t{1} << 36)
    return std::nullopt;
  return LinkToken{.search = std::string(parts[0]),
                   .attempt = *attempt,
                   .expires = time_at(seconds * 1000),
                   .signature = std::string(parts[3])};
}

bool is_genuine(const LinkToken& token, const Search& search) {
  // Another program may have written the row without one: then anybody could sign.
  if (search.nonce.empty()) return false;
  return equal_in_constant_time(signature_of(search, token.attempt, epoch_milliseconds(token.expires) / 1000),
                                token.signature);
}

std::string without_links(std::string_view text) {
  std::string shown;
  while (true) {
    const auto at = text.find(kLinkPath);
    if (at == std::string_view::npos) return shown.append(text);
    const auto token = at + kLinkPath.size();
    const auto end = std::min(text.find_first_of(" \t\r\n\"'<>", token), text.size());
    shown.append(text.substr(0, token)).append("…");
    text.remove_prefix(end);
  }
}

std::string reply_code(const Search& search, const AttemptId& attempt) {
  // Without those that are taken for each other.
  constexpr std::string_view kLetters = "ACDEFGHJKLMNPQRTUVWXY34679";
  const auto hash = hmac_sha256(search.nonce, "code|" + attempt.text());
  std::string code;
  for (size_t i = 0; i < kCodeLetters; ++i)
    code.push_back(kLetters[static_cast<uint8_t>(hash[i]) % kLetters.size()]);
  return code;
}

}  // namespace tabella::manhunt

#include "search/terms.h"

#include <algorithm>

#include "base/utf8.h"

namespace tabella::search {
namespace {

constexpr uint64_t kCharacter = (1u << 21) - 1;
// More terms than that tell little more, and each costs reading.
constexpr size_t kMostTerms = 12;

// The next character; bytes that are no UTF-8 count as they are.
uint32_t take_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  uint32_t c = more == 3 ? first & 0x07 : more == 2 ? first & 0x0f : more == 1 ? first & 0x1f : first;
  for (int i = 0; i < more && at < text.size() && (byte(at) & 0xc0) == 0x80; ++i)
    c = c << 6 | (byte(at++) & 0x3f);
  return c & kCharacter;
}

}  // namespace

void append_trigrams(std::vector<Trigram>& out, std::string_view text) {
  if (text.empty()) return;
  uint64_t window = 0;
  size_t seen = 0;
  const auto push = [&](uint32_t c) {
    window = (window << 21 | c) & ((1ull << 63) - 1);
    if (++seen >= 3) out.push_back(window);
  };
  for (size_t at = 0; at < text.size();) push(take_character(text, at));
  push(0);
  push(0);
}

std::string term_of(char field, Trigram trigram) {
  std::string term(1, field);
  for (const int shift : {42, 21, 0}) append_utf8(term, trigram >> shift & kCharacter);
  return term;
}

TermQuery terms_for(char field, std::string_view text) {
  std::vector<uint32_t> characters;
  for (size_t at = 0; at < text.size();) characters.push_back(take_character(text, at));
  TermQuery query;
  if (characters.size() < 3) {
    query.prefix = field;
    for (const auto c : characters) append_utf8(query.prefix, c);
    query.exact = true;
    return query;
  }
  std::vector<std::string> all;
  for (size_t i = 0; i + 2 < characters.size(); ++i)
    all.push_back(term_of(field, static_cast<uint64_t>(characters[i]) << 42 |
                                     static_cast<uint64_t>(characters[i + 1]) << 21 | characters[i + 2]));
  query.exact = all.size() == 1;
  const size_t count = std::min(all.size(), kMostTerms);
  for (size_t i = 0; i < count; ++i)
    query.terms.push_back(all[i * (all.size() - 1) / std::max<size_t>(count - 1, 1)]);
  std::ranges::sort(query.terms);
  query.terms.erase(std::ranges::unique(query.terms).begin(), query.terms.end());
  return query;
}

}  // namespace tabella::search

#include "mime/html_tokens.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"
#include "mime/utf8.h"

namespace tabella::mime {
namespace {

constexpr size_t kMostAttributes = 100;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Reference {
  std::string_view name;
  uint32_t character;
};

// Those that mails use: markup, Latin-1, and common signs. Sorted by name.
constexpr auto kReferences = std::to_array<Reference>({
    {"AElig", 198},  {"Aacute", 193},  {"Acirc", 194},   {"Agrave", 192},  {"Aring", 197},   {"Atilde", 195},
    {"Auml", 196},   {"Ccedil", 199},  {"Dagger", 8225}, {"ETH", 208},     {"Eacute", 201},  {"Ecirc", 202},
    {"Egrave", 200}, {"Euml", 203},    {"Iacute", 205},  {"Icirc", 206},   {"Igrave", 204},  {"Iuml", 207},
    {"Ntilde", 209}, {"OElig", 338},   {"Oacute", 211},  {"Ocirc", 212},   {"Ograve", 210},  {"Oslash", 216},
    {"Otilde", 213}, {"Ouml", 214},    {"Scaron", 352},  {"THORN", 222},   {"Uacute", 218},  {"Ucirc", 219},
    {"Ugrave", 217}, {"Uuml", 220},    {"Yacute", 221},  {"Yuml", 376},    {"aacute", 225},  {"acirc", 226},
    {"acute", 180},  {"aelig", 230},   {"agrave", 224},  {"amp", 38},      {"apos", 39},     {"aring", 229},
    {"atilde", 227}, {"auml", 228},    {"bdquo", 8222},  {"brvbar", 166},  {"bull", 8226},   {"ccedil", 231},
    {"cedil", 184},  {"cent", 162},    {"circ", 710},    {"copy", 169},    {"curren", 164},  {"dagger", 8224},
    {"darr", 8595},  {"deg", 176},     {"divide", 247},  {"eacute", 233},  {"ecirc", 234},   {"egrave", 232},
    {"emsp", 8195},  {"ensp", 8194},   {"eth", 240},     {"euml", 235},    {"euro", 8364},   {"frac12", 189},
    {"frac14", 188}, {"frac34", 190},  {"gt", 62},       {"hearts", 9829}, {"hellip", 8230}, {"iacute", 237},
    {"icirc", 238},  {"iexcl", 161},   {"igrave", 236},  {"iquest", 191},  {"iuml", 239},    {"laquo", 171},
    {"larr", 8592},  {"ldquo", 8220},  {"lsaquo", 8249}, {"lsquo", 8216},  {"lt", 60},       {"macr", 175},
    {"mdash", 8212}, {"micro", 181},   {"middot", 183},  {"nbsp", 160},    {"ndash", 8211},  {"not", 172},
    {"ntilde", 241}, {"oacute", 243},  {"ocirc", 244},   {"oelig", 339},   {"ograve", 242},  {"ordf", 170},
    {"ordm", 186},   {"oslash", 248},  {"otilde", 245},  {"ouml", 246},    {"para", 182},    {"permil", 8240},
    {"plusmn", 177}, {"pound", 163},   {"quot", 34},     {"raquo", 187},   {"rarr", 8594},   {"rdquo", 8221},
    {"reg", 174},    {"rsaquo", 8250}, {"rsquo", 8217},  {"sbquo", 8218},  {"scaron", 353},  {"sect", 167},
    {"shy", 173},    {"sup1", 185},    {"sup2", 178},    {"sup3", 179},    {"szlig", 223},   {"thinsp", 8201},
    {"thorn", 254},  {"tilde", 732},   {"times", 215},   {"trade", 8482},  {"uacute", 250},  {"uarr", 8593},
    {"ucirc", 251},  {"ugrave", 249},  {"uml", 168},     {"uuml", 252},    {"yacute", 253},  {"yen", 165},
    {"yuml", 255},   {"zwj", 8205},    {"zwnj", 8204},
});
static_assert(std::ranges::is_sorted(kReferences, {}, &Reference::name));

// The character that "&…" at the front of `text` stands for, and how long the reference is; 0: it is none.
size_t read_reference(std::string_view text, uint32_t& character) {
  if (text.size() < 3) return 0;
  size_t i = 1;
  if (text[1] == '#') {
    const bool hexadecimal = text[2] == 'x' || text[2] == 'X';
    const uint32_t base = hexadecimal ? 16 : 10;
    const size_t digits = i = hexadecimal ? 3 : 2;
    uint64_t value = 0;
    for (; i < text.size() && i < digits + 10; ++i) {
      const char c = lower(text[i]);
      const int digit = c >= '0' && c <= '9'                  ? c - '0'
                        : hexadecimal && c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                              : -1;
      if (digit < 0) break;
      value = value * base + static_cast<uint32_t>(digit);
    }
    if (i == digits) return 0;
    character = static_cast<uint32_t>(std::min<uint64_t>(value, 0x110000));
  } else {
    while (i < text.size() && i < 12 && (is_letter(text[i]) || (text[i] >= '0' && text[i] <= '9'))) ++i;
    const auto name = text.substr(1, i - 1);
    const auto found = std::ranges::lower_bound(kReferences, name, {}, &Reference::name);
    if (found == kReferences.end() || found->name != name) return 0;
    character = found->character;
  }
  return i < text.size() && text[i] == ';' ? i + 1 : i;
}

}  // namespace

std::string decode_references(std::string_view text) {
  std::string out;
  while (true) {
    const auto at = text.find('&');
    out.append(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at);
    uint32_t character = 0;
    const auto length = read_reference(text, character);
    const bool none = character == 0 || character > 0x10ffff || (character >= 0xd800 && character < 0xe000);
    if (length > 0)
      append_utf8(out, none ? 0xfffd : character);
    else
      out.push_back('&');
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

void HtmlTokens::read_attributes(HtmlToken& token) {
  while (true) {
    while (!rest_.empty() && (is_space(rest_.front()) || rest_.front() == '/')) rest_.remove_prefix(1);
    if (rest_.empty()) return;
    if (rest_.front() == '>') {
      rest_.remove_prefix(1);
      return;
    }
    size_t end = rest_.front() == '=' ? 1 : 0;
    while (end < rest_.size() && !is_space(rest_[end]) && rest_[end] != '=' && rest_[end] != '>' &&
           rest_[end] != '/')
      ++end;
    auto name = lower(rest_.substr(0, end));
    rest_.remove_prefix(end);
    auto after = rest_;
    while (!after.empty() && is_space(after.front())) after.remove_prefix(1);
    std::string_view value;
    if (after.starts_with('=')) {
      after.remove_prefix(1);
      while (!after.empty() && is_space(after.front())) after.remove_prefix(1);
      if (!after.empty() && (after.front() == '"' || after.front() == '\'')) {
        const char quote = after.front();
        after.remove_prefix(1);
        const auto close = std::min(after.find(quote), after.size());
        value = after.substr(0, close);
        after.remove_prefix(std::min(close + 1, after.size()));
      } else {
        size_t stop = 0;
        while (stop < after.size() && !is_space(after[stop]) && after[stop] != '>') ++stop;
        value = after.substr(0, stop);
        after.remove_prefix(stop);
      }
      rest_ = after;
    }
    if (token.attributes.size() < kMostAttributes)
      token.attributes.emplace_back(std::move(name), decode_references(value));
  }
}

bool HtmlTokens::read_tag(HtmlToken& token) {
  const bool closing = rest_.size() > 2 && rest_[1] == '/';
  const size_t begin = closing ? 2 : 1;
  if (rest_.size() <= begin || !is_letter(rest_[begin])) return false;
  size_t end = begin;
  while (end < rest_.size() && !is_space(rest_[end]) && rest_[end] != '/' && rest_[end] != '>') ++end;
  token.kind = closing ? HtmlToken::Kind::end : HtmlToken::Kind::start;
  token.name = lower(rest_.substr(begin, end - begin));
  rest_.remove_prefix(end);
  read_attributes(token);
  return true;
}

bool HtmlTokens::next(HtmlToken& token) {
  if (rest_.empty()) return false;
  token.name.clear();
  token.attributes.clear();
  token.text = {};
  if (rest_.front() == '<') {
    if (rest_.size() > 1 && (rest_[1] == '!' || rest_[1] == '?' ||
                             (rest_[1] == '/' && rest_.size() > 2 && !is_letter(rest_[2])))) {
      token.kind = HtmlToken::Kind::other;
      const bool comment = rest_.starts_with("<!--");
      const auto end = comment ? rest_.find("-->", 4) : rest_.find('>');
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + (comment ? 3 : 1));
      return true;
    }
    if (read_tag(token)) return true;
  }
  token.kind = HtmlToken::Kind::text;
  const auto end = std::min(rest_.find('<', 1), rest_.size());
  token.text = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return true;
}

std::string_view HtmlTokens::raw_text(std::string_view element) {
  for (size_t at = 0; (at = rest_.find("</", at)) != std::string_view::npos; at += 2) {
    const auto name = rest_.substr(at + 2, element.size());
    if (name.size() == element.size() &&
        std::ranges::equal(name, element, [](char a, char b) { return lower(a) == b; })) {
      const auto text = rest_.substr(0, at);
      const auto end = rest_.find('>', at);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      return text;
    }
  }
  return std::exchange(rest_, {});
}

}  // namespace tabella::mime

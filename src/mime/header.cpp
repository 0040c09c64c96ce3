#include "mime/header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "mime/encodings.h"
#include "mime/utf8.h"

namespace tabella::mime {
namespace {

constexpr size_t kMostHeaders = 2000;
constexpr size_t kLongestValue = 64 * 1024;  // decoded; the rest stays in the raw message
constexpr size_t kMostParameters = 200;
constexpr size_t kMostAddresses = 2000;

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A line without its end, taken off the front.
std::string_view take_line(std::string_view& bytes) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  auto line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f && c != ':'; });
}

// One encoded word at the front of `text`; its length, 0 if there is none.
struct Word {
  size_t length = 0;
  std::string charset;
  char kind = 0;
  std::string_view content;
};

Word read_word(std::string_view text) {
  constexpr size_t kLongest = 2048;  // RFC 2047 says 75; longer ones are about, endless ones are an attack
  text = text.substr(0, kLongest);
  if (!text.starts_with("=?")) return {};
  const auto charset_end = text.find('?', 2);
  if (charset_end > 80 || charset_end + 3 > text.size()) return {};
  const char kind = static_cast<char>(std::toupper(static_cast<unsigned char>(text[charset_end + 1])));
  if ((kind != 'B' && kind != 'Q') || text[charset_end + 2] != '?') return {};
  const auto end = text.find("?=", charset_end + 3);
  if (end == std::string_view::npos) return {};
  const auto content = text.substr(charset_end + 3, end - charset_end - 3);
  if (std::ranges::any_of(content, is_space) && kind == 'B') return {};
  auto charset = text.substr(2, charset_end - 2);
  charset = charset.substr(0, std::min(charset.find('*'), charset.size()));  // RFC 2231's language
  return {.length = end + 2, .charset = lower(charset), .kind = kind, .content = content};
}

std::string bytes_of(const Word& word) {
  if (word.kind == 'B') return decode_base64(word.content);
  std::string text(word.content);
  std::ranges::replace(text, '_', ' ');
  return decode_quoted_printable(text);
}

std::string percent_decoded(std::string_view text) {
  std::string quoted(text);
  std::ranges::replace(quoted, '=', '\x01');
  std::ranges::replace(quoted, '%', '=');
  auto decoded = decode_quoted_printable(quoted);
  std::ranges::replace(decoded, '\x01', '=');
  return decoded;
}

}  // namespace

std::vector<Header> take_headers(std::string_view& bytes) {
  std::vector<Header> headers;
  auto rest = bytes;
  // Some mailboxes put a line of their own in front.
  if (rest.starts_with("From ") || rest.starts_with(">From ")) take_line(rest);
  while (!rest.empty()) {
    auto after = rest;
    const auto line = take_line(after);
    if (line.empty()) {
      rest = after;
      break;
    }
    const bool continues = (line.front() == ' ' || line.front() == '\t') && !headers.empty();
    if (continues) {
      if (headers.size() < kMostHeaders) headers.back().raw.append(line);
    } else {
      const auto colon = line.find(':');
      const auto name = strip(line.substr(0, colon));
      if (colon == std::string_view::npos || !is_header_name(name)) break;
      if (headers.size() < kMostHeaders)
        headers.push_back(
            {.name = std::string(name), .value = {}, .raw = std::string(strip(line.substr(colon + 1)))});
    }
    rest = after;
  }
  bytes = rest;
  for (auto& header : headers) {
    header.value = decode_words(std::string_view(header.raw).substr(0, kLongestValue));
    header.raw = to_valid_utf8(header.raw);
  }
  return headers;
}

const Header* find_header(const std::vector<Header>& headers, std::string_view name) {
  for (const auto& header : headers)
    if (header.name.size() == name.size() && lower(header.name) == lower(name)) return &header;
  return nullptr;
}

std::string decode_words(std::string_view text) {
  std::string out;
  // Words of one charset that follow each other may share a character between them.
  std::string pending;
  std::string charset;
  const auto flush = [&] {
    out.append(from_charset(pending, charset));
    pending.clear();
  };
  size_t plain = 0;  // where the text that is no word begins
  size_t at = 0;
  bool after_word = false;
  while ((at = text.find("=?", at)) != std::string_view::npos) {
    auto word = read_word(text.substr(at));
    if (word.length == 0) {
      at += 2;
      continue;
    }
    const auto between = text.substr(plain, at - plain);
    // Blanks between two words belong to neither.
    if (!(after_word && std::ranges::all_of(between, is_space))) {
      flush();
      out.append(from_charset(between, ""));
    } else if (word.charset != charset) {
      flush();
    }
    charset = word.charset;
    pending.append(bytes_of(word));
    after_word = true;
    at += word.length;
    plain = at;
  }
  flush();
  out.append(from_charset(text.substr(plain), ""));
  std::erase_if(out, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return out;
}

Parameters parse_parameters(std::string_view text) {
  Parameters result;
  const auto semicolon = std::min(text.find(';'), text.size());
  result.value = lower(strip(text.substr(0, semicolon)));
  text.remove_prefix(semicolon);
  // name*0*=…; name*1=…: pieces by name and number; encoded if there was a star behind it.
  struct Piece {
    std::string text;
    bool encoded;
  };
  std::map<std::string, std::map<int, Piece>> pieces;
  std::map<std::string, std::string> plain;  // name=…, which counts only where there is no other form
  for (size_t count = 0; !text.empty() && count < kMostParameters; ++count) {
    text.remove_prefix(1);
    text = strip(text);
    const auto equals = text.find_first_of("=;");
    if (equals == std::string_view::npos) break;
    if (text[equals] == ';') {
      text.remove_prefix(equals);
      continue;
    }
    auto name = lower(strip(text.substr(0, equals)));
    text.remove_prefix(equals + 1);
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    std::string value;
    if (text.starts_with('"')) {
      size_t i = 1;
      for (; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        value.push_back(text[i]);
      }
      text.remove_prefix(std::min(i + 1, text.size()));
      text.remove_prefix(std::min(text.find(';'), text.size()));
    } else {
      const auto end = std::min(text.find(';'), text.size());
      value = strip(text.substr(0, end));
      text.remove_prefix(end);
    }
    const bool encoded = name.ends_with('*');
    if (encoded) name.pop_back();
    if (!encoded && name.find('*') == std::string::npos) {
      plain.try_emplace(std::move(name), std::move(value));
      continue;
    }
    int number = 0;
    if (const auto star = name.find('*'); star != std::string::npos) {
      std::from_chars(name.data() + star + 1, name.data() + name.size(), number);
      name.resize(star);
    }
    pieces[name].try_emplace(number, Piece{std::move(value), encoded});
  }
  for (const auto& [name, value] : plain) result.parameters[name] = decode_words(value);
  for (const auto& [name, numbered] : pieces) {
    std::string bytes;
    std::string charset;
    bool encoded = false;
    for (const auto& [number, piece] : numbered) {
      std::string_view value = piece.text;
      if (piece.encoded && !encoded) {
        // charset'language'text
        const auto first = value.find('\'');
        const auto second = first == std::string_view::npos ? first : value.find('\'', first + 1);
        if (second != std::string_view::npos) {
          charset = value.substr(0, first);
          value.remove_prefix(second + 1);
        }
        encoded = true;
      }
      bytes.append(piece.encoded ? percent_decoded(value) : std::string(value));
    }
    result.parameters[name] = encoded ? from_charset(bytes, charset) : decode_words(bytes);
  }
  return result;
}

// One pass: what stands in quotes is a name, in brackets an address, in parentheses nothing; commas and
// semicolons end an address, and what stands before a colon names a group.
std::vector<Address> parse_addresses(std::string_view text) {
  std::vector<Address> addresses;
  std::string words;
  std::string address;
  bool bracketed = false;
  const auto finish = [&] {
    auto name = std::string(strip(decode_words(strip(words))));
    auto found = bracketed ? to_valid_utf8(strip(address)) : std::string();
    if (!bracketed && name.find('@') != std::string::npos && name.find(' ') == std::string::npos)
      found = std::exchange(name, {});
    if (!found.empty() || (!name.empty() && !bracketed))
      addresses.push_back({.name = found.empty() ? "" : name, .address = found.empty() ? name : found});
    words.clear();
    address.clear();
    bracketed = false;
  };
  for (size_t i = 0; i < text.size() && addresses.size() < kMostAddresses; ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        words.push_back(text[i]);
      }
    } else if (c == '(') {
      for (int depth = 1; ++i < text.size() && depth > 0;) {
        if (text[i] == '\\')
          ++i;
        else if (text[i] == '(')
          ++depth;
        else if (text[i] == ')')
          --depth;
        if (depth == 0) break;
      }
    } else if (c == '<') {
      const auto end = std::min(text.find('>', i), text.size());
      address = text.substr(i + 1, end - i - 1);
      bracketed = true;
      i = end;
    } else if (c == ',' || c == ';') {
      finish();
    } else if (c == ':' && !bracketed) {
      words.clear();
    } else {
      words.push_back(c);
    }
  }
  finish();
  return addresses;
}

std::optional<int64_t> parse_date(std::string_view text) {
  if (const auto comma = text.find(','); comma != std::string_view::npos) text.remove_prefix(comma + 1);
  std::vector<std::string_view> words;
  for (size_t i = 0; i < text.size() && words.size() < 5;) {
    while (i < text.size() && is_space(text[i])) ++i;
    size_t end = i;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > i) words.push_back(text.substr(i, end - i));
    i = end;
  }
  if (words.size() < 4) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size() && value >= 0 ? std::optional(value)
                                                                                      : std::nullopt;
  };
  static constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                               "jul", "aug", "sep", "oct", "nov", "dec"};
  const auto month = std::ranges::find(kMonths, lower(words[1].substr(0, 3)));
  const auto day = number(words[0]);
  auto year = number(words[2]);
  if (month == kMonths.end() || !day || !year) return std::nullopt;
  if (*year < 50) *year += 2000;
  if (*year < 1000) *year += 1900;
  const auto clock = split(words[3], ':');
  const auto hour = number(clock[0]);
  const auto minute = clock.size() > 1 ? number(clock[1]) : std::nullopt;
  const auto second = clock.size() > 2 ? number(clock[2]) : 0;
  if (!hour || !minute || !second || *hour > 24 || *minute > 60 || *second > 61 || *year > 9999)
    return std::nullopt;
  int64_t offset = 0;
  if (words.size() > 4 && words[4].size() == 5 && (words[4][0] == '+' || words[4][0] == '-')) {
    const auto hours = number(words[4].substr(1, 2));
    const auto minutes = number(words[4].substr(3, 2));
    if (hours && minutes) offset = (*hours * 60 + *minutes) * 60 * (words[4][0] == '-' ? -1 : 1);
  }
  const std::chrono::year_month_day date(
      std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return int64_t{days} * 86400 + *hour * 3600 + *minute * 60 + *second - offset;
}

}  // namespace tabella::mime

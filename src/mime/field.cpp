#include "mime/field.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/text.h"
#include "base/utf8.h"

namespace tabella::mime {
namespace {

constexpr size_t kFoldAt = 76;         // RFC 2047's limit for lines with encoded words; RFC 5322 has 78
constexpr size_t kLongestWord = 75;    // an encoded one
constexpr size_t kLongestName = 126;   // of a field, as SES
constexpr size_t kLongestToken = 850;  // with a name before it on the line
constexpr size_t kWordFrame = 12;      // of which are "=?UTF-8?Q?" and "?="

bool is_seven_bit(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

bool has_control(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (control_length(text.substr(i)) > 0) return true;
  return false;
}

// What needs no quotes in a phrase (RFC 5322's atext).
bool is_atom_character(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-/=?^_`{|}~").find(c) != std::string_view::npos;
}

// What stands for itself in a Q word, wherever the word is; a blank is written as '_'.
bool is_plain_in_word(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == ' ' ||
         std::string_view("!*+-/").find(c) != std::string_view::npos;
}

// Of the valid UTF-8 character at the front.
size_t length_of_character(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && (static_cast<uint8_t>(text[length]) & 0xc0) == 0x80) ++length;
  return length;
}

size_t q_length(std::string_view text) {
  size_t length = 0;
  for (const char c : text) length += is_plain_in_word(c) ? 1 : 3;
  return length;
}

size_t b_length(size_t bytes) { return (bytes + 2) / 3 * 4; }

std::string encoded_word(std::string_view text, bool q) {
  if (!q) return "=?UTF-8?B?" + to_base64(text) + "?=";
  std::string word = "=?UTF-8?Q?";
  for (const char c : text) {
    if (c == ' ')
      word.push_back('_');
    else if (is_plain_in_word(c))
      word.push_back(c);
    else
      fmt::format_to(std::back_inserter(word), "={:02X}", static_cast<uint8_t>(c));
  }
  return word + "?=";
}

// Takes as many whole characters off the front as a word of so many characters can hold: one at least.
std::string_view take_characters(std::string_view& text, bool q, size_t room) {
  size_t taken = 0;
  size_t length = kWordFrame;
  while (taken < text.size()) {
    const auto character = text.substr(taken, length_of_character(text.substr(taken)));
    const auto more = q ? length + q_length(character) : kWordFrame + b_length(taken + character.size());
    if (more > room && taken > 0) break;
    length = more;
    taken += character.size();
  }
  const auto head = text.substr(0, taken);
  text.remove_prefix(taken);
  return head;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + '"';
}

// A field that grows word by word, each behind a blank, at which it is folded where a line would get too
// long.
class Folded {
 public:
  explicit Folded(std::string_view name) : text_(fmt::format("{}:", name)) {}

  void word(std::string_view word) {
    // A name alone on its line is allowed, and some programs do not know it.
    if (column() + 1 + word.size() > kFoldAt && begun_) fold();
    text_.push_back(' ');
    text_.append(word);
    begun_ = true;
  }

  // As encoded words, B or Q, whichever is shorter.
  void encoded(std::string_view text) {
    const bool q = q_length(text) <= b_length(text.size());
    constexpr size_t kLeast = kWordFrame + 12;  // room for one character, however it is encoded
    while (!text.empty()) {
      if (column() + 1 + kLeast > kFoldAt) fold();
      const auto room = std::min(kLongestWord, kFoldAt - column() - 1);
      text_.push_back(' ');
      text_.append(encoded_word(take_characters(text, q, room), q));
      begun_ = true;
    }
  }

  void append(char c) { text_.push_back(c); }
  std::string field() && { return std::move(text_) + "\r\n"; }

 private:
  size_t column() const { return text_.size() - line_; }
  void fold() {
    text_.append("\r\n");
    line_ = text_.size();
  }

  std::string text_;
  size_t line_ = 0;  // where the last line begins
  bool begun_ = false;
};

// At single blanks: several in a row stay within a token, since a field must not be folded to a line of
// blanks.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  size_t begin = 0;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != ' ' || text[i - 1] == ' ' || text[i + 1] == ' ') continue;
    tokens.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  tokens.push_back(text.substr(begin));
  return tokens;
}

bool needs_encoding(std::string_view token) {
  return !is_seven_bit(token) || token.find("=?") != std::string_view::npos || token.size() > kLongestToken ||
         token.starts_with(' ') || token.ends_with(' ');
}

// The tokens from the first to the last that need it become encoded words; the others stay readable.
void add_text(Folded& field, std::string_view text) {
  if (text.empty()) return;
  const auto tokens = tokens_of(text);
  const auto first = std::ranges::find_if(tokens, needs_encoding);
  for (auto token = tokens.begin(); token != first; ++token) field.word(*token);
  if (first == tokens.end()) return;
  auto end = tokens.end();
  while (!needs_encoding(*(end - 1))) --end;
  const char* const last = (end - 1)->data() + (end - 1)->size();
  field.encoded({first->data(), static_cast<size_t>(last - first->data())});
  for (; end != tokens.end(); ++end) field.word(*end);
}

void add_phrase(Folded& field, std::string_view name) {
  constexpr size_t kLongestQuoted = 60;
  const bool atoms = name.find("  ") == std::string_view::npos &&
                     std::ranges::all_of(name, [](char c) { return is_atom_character(c) || c == ' '; });
  if (needs_encoding(name) || (!atoms && name.size() > kLongestQuoted))
    field.encoded(name);
  else if (atoms)
    add_text(field, name);
  else
    field.word(quoted(name));
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_')
      out.push_back(c);
    else
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

constexpr size_t kLongestParameter = 60;

bool is_simple_parameter(std::string_view value) {
  return is_seven_bit(value) && value.find("=?") == std::string_view::npos &&
         value.size() <= kLongestParameter;
}

}  // namespace

bool is_field_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && is_plain(name) &&
         name.find(':') == std::string_view::npos;
}

Checked<> check_text(std::string_view what, std::string_view text) {
  if (!is_valid_utf8(text)) return invalid(fmt::format("{} is not valid UTF-8.", what));
  if (has_control(text)) return invalid(fmt::format("{} must not hold control characters.", what));
  return {};
}

bool is_mailbox(std::string_view address) {
  constexpr size_t kLongest = 320;
  constexpr std::string_view kSpecial = " ()<>[]:;@\\,\"";
  const auto at = address.rfind('@');
  if (at == std::string_view::npos || address.size() > kLongest || !is_valid_utf8(address) ||
      has_control(address))
    return false;
  const auto mailbox = address.substr(0, at);
  auto domain = address.substr(at + 1);
  if (domain.starts_with('[') && domain.ends_with(']')) domain = domain.substr(1, domain.size() - 2);
  const auto without_special = [&](std::string_view part, std::string_view allowed) {
    return !part.empty() && std::ranges::none_of(part, [&](char c) {
      return kSpecial.find(c) != std::string_view::npos && allowed.find(c) == std::string_view::npos;
    });
  };
  const bool literal = domain.size() != address.size() - at - 1;
  return (without_special(mailbox, "") || is_quoted_string(mailbox)) &&
         without_special(domain, literal ? ":" : "");
}

Checked<std::string> text_field(std::string_view name, std::string_view text) {
  if (!is_field_name(name))
    return invalid(fmt::format("'{}' is not the name of a header.", to_valid_utf8(name)));
  TABELLA_TRY(check_text(name, text));
  Folded field(name);
  add_text(field, text);
  return std::move(field).field();
}

Checked<std::string> address_field(std::string_view name, std::span<const Address> addresses) {
  Folded field(name);
  for (const auto& address : addresses) {
    TABELLA_TRY(check_text(fmt::format("A name in {}", name), address.name));
    TABELLA_TRY(check_text(fmt::format("An address in {}", name), address.address));
    if (!is_mailbox(address.address))
      return invalid(fmt::format("{}: '{}' is not an address.", name, address.address));
    if (!address.name.empty()) add_phrase(field, address.name);
    const bool bare = address.name.empty() && !address.address.starts_with('"');
    field.word(bare ? address.address : fmt::format("<{}>", address.address));
    if (&address != &addresses.back()) field.append(',');
  }
  return std::move(field).field();
}

ParameterField::ParameterField(std::string_view name, std::string_view value)
    : text_(fmt::format("{}: {}", name, value)) {}

void ParameterField::add(std::string_view parameter) {
  text_.push_back(';');
  if (text_.size() - line_ + 1 + parameter.size() > kFoldAt) {
    text_.append("\r\n");
    line_ = text_.size();
  }
  text_.push_back(' ');
  text_.append(parameter);
}

ParameterField& ParameterField::parameter(std::string_view name, std::string_view value) {
  if (is_simple_parameter(value)) {
    add(fmt::format("{}={}", name, quoted(value)));
    return *this;
  }
  auto encoded = "UTF-8''" + percent_encoded(value);
  if (encoded.size() <= kLongestParameter) {
    add(fmt::format("{}*={}", name, encoded));
    return *this;
  }
  for (size_t number = 0, at = 0; at < encoded.size(); ++number) {
    auto size = std::min(kLongestParameter, encoded.size() - at);
    // Not within a %XX.
    if (const auto percent = encoded.rfind('%', at + size - 1); at + size < encoded.size() &&
                                                                percent != std::string::npos &&
                                                                percent >= at && percent + 3 > at + size)
      size = percent - at;
    add(fmt::format("{}*{}*={}", name, number, std::string_view(encoded).substr(at, size)));
    at += size;
  }
  return *this;
}

ParameterField& ParameterField::old_parameter(std::string_view name, std::string_view value) {
  if (is_simple_parameter(value)) {
    add(fmt::format("{}={}", name, quoted(value)));
    return *this;
  }
  std::string words;
  const bool q = q_length(value) <= b_length(value.size());
  while (!value.empty()) {
    if (!words.empty()) words.append("\r\n ");
    words.append(encoded_word(take_characters(value, q, kLongestParameter), q));
  }
  add(fmt::format("{}=\"{}\"", name, words));
  line_ = text_.rfind('\n') + 1;
  return *this;
}

std::string date_text(TimePoint time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char buffer[40];
  return {buffer, std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S +0000", &utc)};
}

}  // namespace tabella::mime

#include "mail/query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "mail/document.h"
#include "mime/fold.h"
#include "mime/utf8.h"

namespace tabella::mail {
namespace {

constexpr size_t kMostTerms = 50;

struct Term {
  std::string text;      // quotes taken off
  bool literal = false;  // it began with a quote: no operator
};

// At blanks, but not inside quotes.
std::vector<Term> split_terms(std::string_view text) {
  std::vector<Term> terms;
  Term term;
  bool quoted = false;
  bool begun = false;
  for (const char c : text) {
    if (c == '"') {
      if (!begun || term.text == "-" || term.text == "!") term.literal = true;
      quoted = !quoted;
      begun = true;
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) {
      if (begun) terms.push_back(std::exchange(term, {}));
      begun = false;
    } else {
      term.text.push_back(c);
      begun = true;
    }
  }
  if (begun) terms.push_back(std::move(term));
  return terms;
}

std::string fold_query(std::string_view text) {
  auto folded = mime::fold(mime::to_valid_utf8(text));
  std::ranges::replace(folded, '\0', ' ');
  return folded;
}

struct FieldOperator {
  std::string_view name;
  std::string_view fields;
};
constexpr auto kFieldOperators = std::to_array<FieldOperator>({{"from", "f"},
                                                               {"to", "t"},
                                                               {"cc", "c"},
                                                               {"bcc", "b"},
                                                               {"reply-to", "r"},
                                                               {"addressed", "ftcbr"},
                                                               {"subject", "s"},
                                                               {"message-id", "m"},
                                                               {"attachment", "a"}});

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  static constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"kb", 1024},     {"k", 1024},     {"mb", 1u << 20}, {"m", 1u << 20},
      {"gb", 1u << 30}, {"g", 1u << 30}, {"b", 1}};
  const auto small = mime::fold(text);
  std::string_view digits = small;
  uint64_t unit = 1;
  for (const auto& [name, factor] : kUnits)
    if (digits.ends_with(name)) {
      digits.remove_suffix(name.size());
      unit = factor;
      break;
    }
  const auto value = number<double>(trim(digits));
  const auto bytes = value.value_or(-1) * static_cast<double>(unit);
  if (!std::isfinite(bytes) || bytes < 0 || bytes > 1e15) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

// 2024-01-31, 2024-01-31T10:00[:05][Z|+02:00], seconds since 1970, or "2h" ago.
std::optional<Nanoseconds> read_moment(std::string_view text, TimePoint now) {
  if (const auto seconds = number<int64_t>(text); seconds && text.size() >= 9)
    return *seconds > 4'000'000'000 ? std::nullopt : std::optional(*seconds * kSecond);
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.back())) && text.back() != 'Z') {
    const auto ago = parse_duration(text);
    if (!ago) return std::nullopt;
    return (epoch_milliseconds(now) - ago->count()) * 1'000'000;
  }
  const auto field = [&](size_t at, size_t length) {
    return number<int>(text.substr(std::min(at, text.size()), length));
  };
  const auto year = field(0, 4);
  const auto month = field(5, 2);
  const auto day = field(8, 2);
  if (text.size() < 10 || text[4] != '-' || text[7] != '-' || !year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *year < 1970 || *year > 2200) return std::nullopt;
  int64_t seconds = int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 86400;
  auto rest = text.substr(10);
  if (rest.empty()) return seconds * kSecond;
  if (rest.size() < 6 || (rest[0] != 'T' && rest[0] != ' ') || rest[3] != ':') return std::nullopt;
  const auto hour = number<int>(rest.substr(1, 2));
  const auto minute = number<int>(rest.substr(4, 2));
  if (!hour || !minute) return std::nullopt;
  seconds += *hour * 3600 + *minute * 60;
  rest.remove_prefix(6);
  if (rest.size() >= 3 && rest[0] == ':') {
    const auto second = number<int>(rest.substr(1, 2));
    if (!second) return std::nullopt;
    seconds += *second;
    rest.remove_prefix(3);
  }
  if (rest.size() == 6 && (rest[0] == '+' || rest[0] == '-')) {
    const auto hours = number<int>(rest.substr(1, 2));
    const auto minutes = number<int>(rest.substr(4, 2));
    if (!hours || !minutes) return std::nullopt;
    seconds -= (*hours * 3600 + *minutes * 60) * (rest[0] == '-' ? -1 : 1);
  } else if (!rest.empty() && rest != "Z") {
    return std::nullopt;
  }
  return seconds * kSecond;
}

void also(Filter& filter, std::function<bool(const search::Entry&)> condition, bool negated) {
  filter.entry = [before = std::move(filter.entry), condition = std::move(condition),
                  negated](const search::Entry& entry) {
    return (!before || before(entry)) && condition(entry) != negated;
  };
}

using Parsed = std::expected<void, std::string>;

Parsed add_is(Filter& filter, const std::string& value, bool negated) {
  if (value == "read" || value == "unread")
    filter.labels.push_back({.word = kReadLabel, .negated = (value == "unread") != negated});
  else if (value == "tagged")
    filter.labels.push_back({.word = tag_label(""), .negated = negated, .prefix = true});
  else
    return std::unexpected(
        fmt::format("is:{} is not known; there is is:read, is:unread and is:tagged", value));
  return {};
}

Parsed add_has(Filter& filter, const std::string& value, bool negated) {
  uint32_t flag = 0;
  if (value == "attachment" || value == "attachments") flag = kHasAttachment;
  if (value == "inline" || value == "inlines") flag = kHasInline;
  if (flag == 0)
    return std::unexpected(fmt::format("has:{} is not known; there is has:attachment and has:inline", value));
  also(filter, [flag](const search::Entry& entry) { return (entry.flags & flag) != 0; }, negated);
  return {};
}

Parsed add_time(Filter& filter, bool before, const std::string& value, TimePoint now) {
  const auto time = read_moment(value, now);
  if (!time)
    return std::unexpected(fmt::format("{}:{} is no time; try 2024-01-31, 2024-01-31T10:00Z or 2h",
                                       before ? "before" : "after", value));
  auto bound = id_prefix(*time);
  // The narrower of two.
  if (before)
    filter.until = filter.until.empty() ? bound : std::min(filter.until, bound);
  else
    filter.from = std::max(filter.from, bound);
  return {};
}

Parsed add_size(Filter& filter, bool larger, const std::string& value, bool negated) {
  const auto size = parse_size(value);
  if (!size)
    return std::unexpected(
        fmt::format("{}:{} is no size; try 500, 100k or 1.5M", larger ? "larger" : "smaller", value));
  also(
      filter,
      [larger, size = *size](const search::Entry& entry) {
        return larger ? entry.size > size : entry.size < size;
      },
      negated);
  return {};
}

// False if it is no operator, and so just text.
std::expected<bool, std::string> add_operator(Filter& filter, std::string_view text, bool negated,
                                              TimePoint now) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
  const auto name = mime::fold(text.substr(0, colon));
  const std::string value(text.substr(colon + 1));
  for (const auto& [operator_name, fields] : kFieldOperators) {
    if (name != operator_name) continue;
    filter.texts.push_back({.fields = std::string(fields), .text = fold_query(value), .negated = negated});
    return true;
  }
  Parsed added;
  if (name == "tag")
    filter.labels.push_back({.word = tag_label(value), .negated = negated});
  else if (name == "inbox")
    filter.keys.push_back({.word = inbox_key(value), .negated = negated});
  else if (name == "is")
    added = add_is(filter, mime::fold(value), negated);
  else if (name == "has")
    added = add_has(filter, mime::fold(value), negated);
  else if (name == "before" || name == "after")
    added = add_time(filter, (name == "before") != negated, value, now);
  else if (name == "larger" || name == "smaller")
    added = add_size(filter, name == "larger", value, negated);
  else
    return false;
  if (!added) return std::unexpected(added.error());
  return true;
}

}  // namespace

std::expected<Filter, std::string> parse_query(std::string_view text, TimePoint now) {
  Filter filter;
  const auto terms = split_terms(text);
  if (terms.size() > kMostTerms) return std::unexpected(fmt::format("more than {} words", kMostTerms));
  for (const auto& term : terms) {
    std::string_view rest = term.text;
    const bool negated = rest.size() > 1 && (rest.front() == '-' || rest.front() == '!');
    if (negated) rest.remove_prefix(1);
    if (rest.empty()) continue;
    if (!term.literal) {
      const auto added = add_operator(filter, rest, negated, now);
      if (!added) return std::unexpected(added.error());
      if (*added) continue;
    }
    filter.texts.push_back({.text = fold_query(rest), .negated = negated});
  }
  // What folds to nothing is in everything.
  std::erase_if(filter.texts, [](const Filter::Text& condition) { return condition.text.empty(); });
  return filter;
}

std::optional<Filter> mailhog_query(std::string_view kind, std::string_view text) {
  Filter::Text condition{.text = fold_query(text)};
  if (kind == "from")
    condition.fields = kFrom;
  else if (kind == "to")
    condition.fields = kTo;
  else if (kind != "containing")
    return std::nullopt;
  Filter filter;
  filter.texts.push_back(std::move(condition));
  return filter;
}

}  // namespace tabella::mail

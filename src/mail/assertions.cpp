#include "mail/assertions.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/json.h"
#include "mail/shown.h"
#include "mime/message.h"
#include "mime/utf8.h"
#include "net/http.h"

namespace tabella::mail {

using Kind = JsonValue::Kind;

namespace {

constexpr std::array<std::string_view, 10> kFields = {"subject",  "from", "to",   "cc",         "bcc",
                                                      "reply_to", "text", "html", "attachment", "tag"};
constexpr std::array<std::string_view, 4> kHow = {"equals", "contains", "starts_with", "ends_with"};

std::expected<void, std::string> read_count(JsonValue count, Assertion& assertion) {
  const auto number = [](const std::optional<JsonValue>& value) -> std::optional<size_t> {
    if (!value || value->kind() != Kind::integer || value->integer() < 0) return std::nullopt;
    return static_cast<size_t>(value->integer());
  };
  if (const auto exactly = number(count)) {
    assertion.least = *exactly;
    assertion.most = exactly;
    return {};
  }
  if (count.kind() != Kind::object) return std::unexpected("count is a number, or {\"min\": 1, \"max\": 3}");
  assertion.least = number(count.find("min")).value_or(0);
  assertion.most = number(count.find("max"));
  return {};
}

std::expected<void, std::string> read_each(JsonValue each, Assertion& assertion) {
  if (each.kind() != Kind::object) return std::unexpected("each is an object of fields");
  for (JsonElements fields(each); fields.next();) {
    const std::string field(fields.key());
    if (std::ranges::find(kFields, field) == kFields.end() && !field.starts_with("header:"))
      return std::unexpected(
          fmt::format("each: '{}' is none of {} and header:Name", field, fmt::join(kFields, ", ")));
    if (fields.value().kind() != Kind::object)
      return std::unexpected(fmt::format("each: {} is an object, as in {{\"contains\": \"…\"}}", field));
    for (JsonElements conditions(fields.value()); conditions.next();) {
      std::string_view how = conditions.key();
      if (how.starts_with("not_")) how.remove_prefix(4);
      if (std::ranges::find(kHow, how) == kHow.end() || conditions.value().kind() != Kind::string)
        return std::unexpected(
            fmt::format("each: {}: expected {} (or not_…) and a text", field, fmt::join(kHow, ", ")));
      assertion.each.push_back({.field = field,
                                .how = std::string(conditions.key()),
                                .value = std::string(conditions.value().string())});
    }
  }
  return {};
}

// All values of a field; one of them is enough.
std::vector<std::string> values_of(const Message& message, const mime::Message& parsed,
                                   const std::string& field) {
  std::vector<std::string> values;
  const auto add = [&](const std::vector<mime::Address>& addresses) {
    for (const auto& address : addresses) {
      values.push_back(address.address);
      values.push_back(address.name.empty() ? address.address
                                            : fmt::format("{} <{}>", address.name, address.address));
    }
  };
  if (field == "subject") values.push_back(parsed.subject);
  if (field == "from") add(parsed.from);
  if (field == "to") {
    add(parsed.to);
    for (const auto& address : message.to) values.push_back(address);
  }
  if (field == "cc") add(parsed.cc);
  if (field == "bcc") add(parsed.bcc);
  if (field == "reply_to") add(parsed.reply_to);
  if (field == "text" && (parsed.text() || parsed.html())) values.push_back(shown_text(parsed));
  if (field == "html" && parsed.html()) values.push_back(parsed.html()->text());
  if (field == "tag") values = message.tags;
  if (field == "attachment")
    for (const auto& part : parsed.parts)
      if (!part.filename.empty()) values.push_back(part.filename);
  if (field.starts_with("header:"))
    for (const auto& header : parsed.headers)
      if (net::same_header(header.name, std::string_view(field).substr(7))) values.push_back(header.value);
  return values;
}

bool holds(const Expectation& expectation, const std::vector<std::string>& values) {
  std::string_view how = expectation.how;
  const bool negated = how.starts_with("not_");
  if (negated) how.remove_prefix(4);
  const bool any = std::ranges::any_of(values, [&](const std::string& value) {
    if (how == "equals") return value == expectation.value;
    if (how == "contains") return value.find(expectation.value) != std::string::npos;
    return how == "starts_with" ? value.starts_with(expectation.value) : value.ends_with(expectation.value);
  });
  return any != negated;
}

std::string shown(const std::vector<std::string>& values) {
  constexpr size_t kLongest = 200;
  if (values.empty()) return "there is none";
  auto text = fmt::format("it is '{}'", fmt::join(values, "', '"));
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…'";
  return mime::to_valid_utf8(text);
}

}  // namespace

std::expected<Assertion, std::string> parse_assertion(std::string_view text, TimePoint now) {
  JsonDocument document;
  const auto json = document.parse(text);
  if (!json || json->kind() != Kind::object)
    return std::unexpected(
        "expected {\"query\": \"to:bob@example.com\", \"count\": 1, \"each\": {\"subject\": {\"contains\": "
        "\"…\"}}}");
  Assertion assertion;
  for (JsonElements members(*json); members.next();) {
    const auto name = members.key();
    const auto value = members.value();
    if (name == "query" && value.kind() == Kind::string) {
      auto filter = parse_query(value.string(), now);
      if (!filter) return std::unexpected("query: " + filter.error());
      assertion.filter = std::move(*filter);
    } else if (name == "count") {
      if (auto read = read_count(value, assertion); !read) return std::unexpected(read.error());
    } else if (name == "timeout" && value.kind() == Kind::string) {
      const auto timeout = parse_duration(value.string());
      if (!timeout || *timeout > std::chrono::minutes(10))
        return std::unexpected("timeout is a time up to 10m, as in \"5s\"");
      assertion.timeout = *timeout;
    } else if (name == "each") {
      if (auto read = read_each(value, assertion); !read) return std::unexpected(read.error());
    } else {
      return std::unexpected(
          fmt::format("'{}' is none of query, count, timeout and each, or not of the right kind", name));
    }
  }
  return assertion;
}

std::vector<std::string> count_failures(const Assertion& assertion, size_t total) {
  std::vector<std::string> wrong;
  if (total < assertion.least)
    wrong.push_back(fmt::format("{} messages match, and at least {} should", total, assertion.least));
  if (assertion.most && total > *assertion.most)
    wrong.push_back(fmt::format("{} messages match, and at most {} should", total, *assertion.most));
  return wrong;
}

std::vector<std::string> message_failures(const Assertion& assertion, const Message& message) {
  std::vector<std::string> wrong;
  const auto parsed = mime::parse(message.raw);
  for (const auto& expectation : assertion.each) {
    const auto values = values_of(message, parsed, expectation.field);
    if (holds(expectation, values)) continue;
    wrong.push_back(fmt::format("message {}: {} should be so: {} '{}', but {}", url_spelling(message.id),
                                expectation.field, expectation.how, expectation.value, shown(values)));
  }
  return wrong;
}

}  // namespace tabella::mail

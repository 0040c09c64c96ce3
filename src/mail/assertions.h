// What a test expects of the messages that were sent, and what is wrong with those that are there.
//
//   {"query": "to:bob@example.com", "count": 1, "timeout": "5s",
//    "each": {"subject": {"equals": "Welcome"}, "text": {"contains": "confirm"}}}
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "mail/model.h"
#include "mail/query.h"

namespace tabella::mail {

struct Expectation {
  std::string field;  // subject, from, to, cc, bcc, reply_to, text, html, attachment, tag or header:Name
  std::string how;    // equals, contains, starts_with, ends_with, and each with not_ in front
  std::string value;
};

struct Assertion {
  Filter filter;
  size_t least = 1;
  std::optional<size_t> most;
  std::chrono::milliseconds timeout{0};
  std::vector<Expectation> each;  // of every message that the query finds
};

// A sentence if it cannot be understood.
std::expected<Assertion, std::string> parse_assertion(std::string_view json, TimePoint now);

// What is wrong, in sentences; nothing: it holds. With how many the query finds, and with one of them, whole.
std::vector<std::string> count_failures(const Assertion& assertion, size_t total);
std::vector<std::string> message_failures(const Assertion& assertion, const Message& message);

}  // namespace tabella::mail

#include "outbox/email.h"

#include <algorithm>

namespace tabella::outbox {
namespace {

constexpr std::array<std::string_view, kStates.size()> kStateNames = {"ACCEPTED",
                                                                      "INTAKING",
                                                                      "READY",
                                                                      "PROCESSING",
                                                                      "SENT",
                                                                      "FAILED",
                                                                      "INVALID",
                                                                      "CALLING-SENT-CALLBACK",
                                                                      "CALLING-FAILED-CALLBACK",
                                                                      "SENT-ACKNOWLEDGED",
                                                                      "FAILED-ACKNOWLEDGED"};

constexpr bool may_be_in_id(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

}  // namespace

std::string_view name_of(State state) { return kStateNames[static_cast<size_t>(state)]; }

std::optional<State> state_named(std::string_view name) {
  const auto* const found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<State>(found - kStateNames.begin());
}

bool is_email_id(std::string_view text) {
  return !text.empty() && text.size() <= 36 && text.front() != '.' && std::ranges::all_of(text, may_be_in_id);
}

}  // namespace tabella::outbox

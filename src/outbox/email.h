// An email as the outbox's tables have it, whichever backend they are in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tabella::outbox {

enum class State {
  accepted,
  intaking,
  ready,
  processing,
  sent,
  failed,
  invalid,
  calling_sent_callback,
  calling_failed_callback,
  sent_acknowledged,
  failed_acknowledged,
};

inline constexpr std::array kStates = {State::accepted,
                                       State::intaking,
                                       State::ready,
                                       State::processing,
                                       State::sent,
                                       State::failed,
                                       State::invalid,
                                       State::calling_sent_callback,
                                       State::calling_failed_callback,
                                       State::sent_acknowledged,
                                       State::failed_acknowledged};

// "CALLING-SENT-CALLBACK", as it stands in the tables.
std::string_view name_of(State state);
std::optional<State> state_named(std::string_view name);

struct Email {
  std::string id;
  State status = State::accepted;
  std::string eml_file_path = {};      // empty: its content is in the store
  std::string payload_file_path = {};  // what intake reads; empty: there is no such file
  TimePoint updated_at = {};
  std::string reason = {};          // of its last state
  std::optional<int64_t> ttl = {};  // seconds since 1970; the DynamoDB backend's
  int version = 0;                  // the MySQL backend's
};

// Ids are a CHAR(36) in MySQL, part of paths and of URLs: letters, digits, '-', '_' and '.', not beginning
// with a dot, at most 36.
bool is_email_id(std::string_view text);

}  // namespace tabella::outbox

// What has changed in MySQL's tables since a position, found by asking: MySQL tells nobody.
//
// Two things are read. The history (email_statuses) by its ascending id. Ids are given when a row is
// inserted, but seen when its transaction is committed, so they turn up out of order: an id that was passed
// over is a gap in the position, asked for again until it appears or a minute has gone by, by when it was
// rolled back. And, since others may set a state without a row in the history, the emails themselves that are
// in a state from which we would carry them on, without a row in the history that is as new as they are.
// They are found by updated_at, which is in whole seconds and also older than the commit: a few seconds are
// read again with every call, and two minutes from time to time.
//
// All times are the server's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/backend.h"
#include "outbox/mysql_connection.h"

namespace tabella::outbox {

// A place among the emails of a state, by updated_at and id.
struct MysqlPlace {
  int64_t at = 0;  // seconds since 1970
  std::string id = {};

  std::string text() const;
  static std::optional<MysqlPlace> parse(std::string_view text);
};

// From which states we take emails that others have put there.
inline constexpr std::array kTakenUp = {State::accepted, State::ready, State::sent, State::failed};

struct MysqlPosition {
  // Ids that had not been seen when a later one was.
  struct Gap {
    int64_t first = 0;
    int64_t last = 0;
    int64_t noticed = 0;
  };

  int64_t last = 0;            // everything up to this id of the history was seen, but for the gaps
  std::vector<Gap> gaps = {};  // ascending
  std::array<MysqlPlace, kTakenUp.size()> places = {};
  int64_t swept = 0;  // when the two minutes were last read again

  // Up to `id`, which is above all others, and which was seen.
  void pass(int64_t id, int64_t now);
  // An id in one of the gaps was seen.
  void fill(int64_t id);

  std::string text() const;
  static std::optional<MysqlPosition> parse(std::string_view text);
};

// Whether a row of the history is one that this process wrote.
using IsOurs = std::function<bool(int64_t id)>;

// Where the tables are now.
MysqlResult<MysqlPosition> present_position(MysqlConnection& connection);
MysqlResult<Changes> changes_behind(MysqlConnection& connection, MysqlPosition position, size_t most,
                                    const IsOurs& is_ours);

}  // namespace tabella::outbox

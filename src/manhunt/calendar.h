// A schedule as a calendar feed (RFC 5545).
#pragma once

#include <map>
#include <string>

#include "manhunt/rotation.h"

namespace tabella::manhunt {

// The shifts from `from` to `to`; `names` are those of contacts, by their ids. The same shifts are the same
// bytes.
Checked<std::string> calendar_of(const OnCallSchedule& schedule, std::string_view id,
                                 const std::map<std::string, std::string>& names, TimePoint from,
                                 TimePoint to);

}  // namespace tabella::manhunt

// What the attributes of the rows of heads (journal/heads.h) are called. Whoever moves a head writes them by
// these names; Heads::head_of reads them.
#pragma once

#include <string_view>

namespace tabella::journal::head_attributes {

// The keys, of all rows.
inline constexpr std::string_view kId = "id";
inline constexpr std::string_view kPart = "part";

// Of a head.
inline constexpr std::string_view kHighest = "highest";
inline constexpr std::string_view kDeletedTo = "deleted_to";
inline constexpr std::string_view kPurgeTo = "purge_to";
inline constexpr std::string_view kPurgedTo = "purged_to";
inline constexpr std::string_view kEpoch = "epoch";
inline constexpr std::string_view kExpiringTo = "expiring_to";
inline constexpr std::string_view kExpiresAt = "expires_at";  // milliseconds; the head itself stays
inline constexpr std::string_view kTime = "time";             // milliseconds
inline constexpr std::string_view kTagged = "tagged";         // a BOOL

// Of a head while somebody is staging events behind it; all of them or none.
inline constexpr std::string_view kStagedId = "staged_id";      // of whoever holds the head for it
inline constexpr std::string_view kStagedRows = "staged_rows";  // the append that the rows are of
inline constexpr std::string_view kStagedFirst = "staged_first";
inline constexpr std::string_view kStagedLast = "staged_last";
inline constexpr std::string_view kStagedEpoch = "staged_epoch";
inline constexpr std::string_view kStagedBeat = "staged_beat";  // a string

// Of what is kept of an append with a batch id.
inline constexpr std::string_view kFirst = "first";
inline constexpr std::string_view kLast = "last";
inline constexpr std::string_view kExpires = "expires";  // seconds; the table's time to live

}  // namespace tabella::journal::head_attributes

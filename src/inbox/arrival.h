// How a message comes into a box: the writes of the transaction, and what to make of one that failed.
#pragma once

#include <vector>

#include <boost/asio/awaitable.hpp>

#include "inbox/model.h"
#include "store/error.h"
#include "store/transactions.h"

namespace tabella::inbox {

// The message, then the box's counters, and those of its category. Fails where a message of that id is there,
// where the box has come further than `sequence`, and where its user has the bell switched off.
std::vector<store::TransactWrite> arrival(const std::string& table, const Box& box, const Content& content,
                                          int64_t sequence, TimePoint now);

// The latest sequence that stood in the way, of rows c#* that a transaction failed on.
int64_t sequence_in_the_way(const store::Error& error);
// Whether it failed since the user has the bell switched off, where the writes of the arrival begin at
// `first`.
bool does_not_want(const store::Error& error, size_t first, const Content& content);
// Whether the box can take no more: a row of it would be larger than any may be, or there are too many
// broadcasts.
bool is_full(const store::Error& error, size_t first, const Content& content);
// How many writes an arrival is.
inline size_t writes_of_arrival(const Content& content) { return content.category.empty() ? 2 : 3; }

// That have not expired. Whoever counts looks at all of them.
inline constexpr int64_t kMostBroadcasts = 100'000;
store::Error too_many_broadcasts();

inline constexpr int kMostDeliveries = 100;  // tries
boost::asio::awaitable<void> pause_before(int tries);
store::Error too_busy_to_publish();

}  // namespace tabella::inbox

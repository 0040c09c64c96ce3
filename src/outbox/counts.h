// How many emails are in which state, counted from the stream of their table: exact, whoever moves them, and
// at no cost for those who do.
//
// Each shard of the stream has a row with what its records have added to and taken from each state, and how
// far it has got; the counts are the sums. A record that comes again is not counted again.
#pragma once

#include <map>
#include <span>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "outbox/email.h"
#include "store/store.h"

namespace tabella::outbox {

// The partition of their rows, in a table of ours with keys `id` and `part`.
inline constexpr const char* kCountsPartition = "#counts";

store::Async<std::map<State, int64_t>> read_counts(store::Store& store, const std::string& table);

// Adds those that were there before the stream began; once, whoever comes first.
store::Async<void> put_counts_before(store::Store& store, const std::string& table,
                                     const std::map<State, int64_t>& counts);

// For the one thread that reads the stream.
class Counts {
 public:
  Counts(store::Store& store, std::string table) : store_(store), table_(std::move(table)) {}

  // The next records of a shard, of which nobody else handles any meanwhile.
  store::Async<void> count(const std::string& shard, std::span<const store::StreamRecord> records);

 private:
  store::Store& store_;
  const std::string table_;
};

}  // namespace tabella::outbox

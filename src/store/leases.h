// Who reads which shard, and how far: rows in a table of the store, so that several processes can share a
// stream.
//
// A row belongs to one consumer and one shard. Its holder writes a new `beat` every so often; whoever sees it
// stand still for a lease's length by his own clock may take the row over. So nobody's clock needs to agree
// with anybody's, and a holder that has not renewed for that long must take it for lost.
//
// A beat is random and tells one write from all others: if its answer is lost on the way and the write is
// sent again, the row itself says whether the first had been made.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::store {

struct Lease {
  std::string shard;
  std::string owner;       // empty: free
  std::string wanted_by;   // who would like to have it; empty: nobody
  std::string checkpoint;  // the last sequence number that was handled; empty: none yet
  bool finished = false;   // the shard is closed and handled to its end
  std::string beat;        // of the last change; empty: there is no such row yet
};

// Not thread-safe: one per reader.
class Leases {
 public:
  // `stream` and `consumer` name the rows together.
  Leases(Store& store, const Clock& clock, std::string table, const std::string& consumer,
         const std::string& stream, std::string worker, std::chrono::milliseconds length);

  // The table that the rows are in.
  static TablePlan plan(const std::string& table);

  // Reads all rows, and notes when each was last seen to change.
  Async<std::vector<Lease>> list();
  // Whether the row is free or its holder has been silent for too long. After list().
  bool can_be_taken(const Lease& lease) const;

  // Each gives the row as it is now if the change could be made, nothing if somebody else was faster.
  Async<std::optional<Lease>> take(const Lease& lease);
  Async<std::optional<Lease>> renew(const Lease& lease);
  Async<std::optional<Lease>> checkpoint(const Lease& lease, std::string sequence, bool finished);
  Async<std::optional<Lease>> release(const Lease& lease);
  Async<std::optional<Lease>> ask_for(const Lease& lease);
  // Removes the row of a shard that is no more.
  Async<void> forget(const Lease& lease);

 private:
  bool seen_long_enough(const Lease& lease) const;
  Item key_of(const std::string& shard) const;
  Update own(const Lease& lease, const std::string& beat) const;
  // `beat` tells whether the update was made, where its answer was lost.
  Async<std::optional<Lease>> change(std::string shard, std::string beat, Update update);

  struct Seen {
    std::string beat;
    Elapsed since;
  };

  Store& store_;
  const Clock& clock_;
  const std::string table_;
  const std::string name_;
  const std::string worker_;
  const std::chrono::milliseconds length_;
  std::map<std::string, Seen> seen_;
};

}  // namespace tabella::store

// Gives events their positions in the order of all. It reads the stream of the heads, whose records say which
// events were appended, and writes down their positions together with how far it has read: one transaction
// that asks that nobody was faster. So every event gets exactly one position, whoever is killed when and
// however often a record comes again.
//
// All records of one head come in order, from one shard of the stream: that is why events of one entity are
// in the order of their numbers.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "journal/heads.h"
#include "journal/journal.h"
#include "journal/order.h"
#include "store/stream_reader.h"

namespace tabella::journal {

class Placement {
 public:
  // `placed` is told of each journal that has new positions, and its last one.
  using Told = std::function<void(const std::string& journal, uint64_t last)>;
  Placement(store::Store& store, const Clock& clock, const Journal& journal, std::string order_table,
            Told placed);

  // A batch of records of the heads' stream; throws where the store fails, to be called again.
  boost::asio::awaitable<void> handle(const std::string& shard, std::span<const store::StreamRecord> records);

 private:
  store::Store& store_;
  const Clock& clock_;
  const Journal& journal_;
  const std::string order_table_;
  const Told placed_;
};

}  // namespace tabella::journal

// Named readers of a journal's order, which remember how far they are. Several processes can share one: its
// slices are divided into parts, each with a checkpoint of its own, and a part is read by whoever holds its
// lease. An event is handed out again if it was not acknowledged before the lease ended.
//
//   id (J#NAME)  part     what
//                "-"      the consumer: tag, parts, created
//                0000…    a part: checkpoint, holder, lease, until
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "journal/order.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::journal {

struct Consumer {
  std::string journal;
  std::string name;
  std::string tag;  // empty: all events
  int parts = 1;
  TimePoint created;
};

struct ConsumerPart {
  int part = 0;
  uint64_t checkpoint = 0;  // everything up to here was acknowledged
  std::string holder;       // empty: nobody
  std::optional<TimePoint> until;
  uint64_t lag = 0;  // positions between the checkpoint and the last
};

struct Delivery {
  int part = 0;
  std::string lease;  // to acknowledge with
  std::vector<Placed> events;
  uint64_t position = 0;  // what to acknowledge once all of them are handled
};

// Why an acknowledgement or a read was refused.
enum class Refused { no_consumer, all_held, lease_lost, behind };

// Thread-safe.
class Consumers {
 public:
  Consumers(store::Store& store, const Clock& clock, const Order& order, std::string table)
      : store_(store), clock_(clock), order_(order), table_(std::move(table)) {}
  static store::TablePlan plan(const std::string& table);

  // Reads from behind `from`. False: there is one of that name already, which stays as it is.
  store::Async<bool> create(Consumer consumer, uint64_t from);
  store::Async<bool> remove(std::string journal, std::string name);
  store::Async<std::optional<Consumer>> find(std::string journal, std::string name) const;
  store::Async<std::vector<Consumer>> list(std::string journal) const;
  store::Async<std::vector<ConsumerPart>> parts(Consumer consumer) const;

  // Events behind the checkpoint of a part that `holder` holds or can have, for `lease` from now on. A part
  // that has news before one that has none. Whoever reads the same part again without acknowledging gets the
  // same events.
  store::Async<std::variant<Delivery, Refused>> read(std::string journal, std::string name,
                                                     std::string holder, size_t limit,
                                                     std::chrono::milliseconds lease);
  // Moves the checkpoint of the part that the lease is for.
  store::Async<std::optional<Refused>> acknowledge(std::string journal, std::string name, std::string lease,
                                                   uint64_t position);
  store::Async<std::optional<Refused>> release(std::string journal, std::string name, std::string lease);
  // Moves the checkpoints of all parts, back or forward; leases are lost.
  store::Async<bool> move_to(std::string journal, std::string name, uint64_t position);

 private:
  store::Store& store_;
  const Clock& clock_;
  const Order& order_;
  const std::string table_;
};

}  // namespace tabella::journal

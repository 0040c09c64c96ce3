// Named readers of a journal's order, which remember how far they are. Several processes can share one: its
// slices are divided into parts, each with a checkpoint of its own, and a part is read by whoever holds its
// lease. Acknowledging all that was handed out gives the part back, so that those who come later get their
// share. An event is handed out again if it was not acknowledged before the lease ended.
//
//   id       part  what
//   J#       NAME  a consumer: tag, parts, created
//   J#NAME   0000… a part of it: checkpoint, and while somebody has it: holder, until. The lease, and up to
//                  where events were delivered under it, stay once it is given back: whoever has not heard of
//                  his acknowledgement may repeat it
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "journal/order.h"
#include "store/rows.h"
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

// Without events where there is nothing new: then there is no lease either, and nothing to acknowledge.
struct Delivery {
  int part = 0;
  std::string lease;  // to acknowledge with
  std::vector<Placed> events;
  uint64_t position = 0;   // what to acknowledge once all of them are handled
  uint64_t last = 0;       // the last position there was: more may come behind it
  bool some_held = false;  // others hold parts, which may have news
};

// Why an acknowledgement or a read was refused. `beyond`: more is acknowledged than was handed out.
enum class Refused { no_consumer, all_held, lease_lost, beyond };

// Thread-safe.
class Consumers {
 public:
  Consumers(store::Store& store, const Clock& clock, const Order& order, std::string table)
      : store_(store), clock_(clock), order_(order), table_(std::move(table)) {}
  static store::TablePlan plan(const std::string& table);

  static constexpr int kMostParts = 32;
  // A delivery ends with the event that makes it larger.
  static constexpr size_t kMostBytes = 4u << 20;

  // Reads from behind `from`, or the last position if that is lower. False: there is one of that name
  // already, which stays as it is.
  store::Async<bool> create(Consumer consumer, uint64_t from);
  store::Async<bool> remove(std::string journal, std::string name);
  store::Async<std::optional<Consumer>> find(std::string journal, std::string name) const;
  store::Async<std::vector<Consumer>> list(std::string journal) const;
  store::Async<std::vector<ConsumerPart>> parts(Consumer consumer) const;

  // Events behind the checkpoint of a part that `holder` holds or can have, for `lease` from now on. A part
  // that has news before one that has none. Whoever reads the same part again without acknowledging gets the
  // same events, and has the same lease for longer.
  store::Async<std::variant<Delivery, Refused>> read(std::string journal, std::string name,
                                                     std::string holder, size_t limit,
                                                     std::chrono::milliseconds lease);
  // Moves the checkpoint of the part that the lease is for, and never back. Once all is acknowledged that was
  // handed out, the part is anybody's again, unless it is to be kept until the lease ends. A lease that has
  // ended holds until somebody else takes the part.
  store::Async<std::optional<Refused>> acknowledge(std::string journal, std::string name, std::string lease,
                                                   uint64_t position, bool keep = false);
  store::Async<std::optional<Refused>> release(std::string journal, std::string name, std::string lease);
  // Moves the checkpoints of all parts, back or forward to the last position at most; leases are lost.
  store::Async<bool> move_to(std::string journal, std::string name, uint64_t position);

 private:
  struct PartRow;
  struct Found;

  store::Async<std::optional<Found>> look(std::string journal, std::string name) const;
  store::Async<std::vector<PartRow>> part_rows(std::string journal, std::string name) const;
  static store::Condition unchanged(const PartRow& part);
  store::Async<OrderPage> news(const Consumer& consumer, const PartRow& part, size_t limit) const;
  // Nothing: somebody else has it.
  store::Async<std::optional<std::string>> take(const Consumer& consumer, const PartRow& part,
                                                std::string holder, std::chrono::milliseconds lease,
                                                uint64_t position);
  store::Async<void> pass_over(const Consumer& consumer, const PartRow& part, uint64_t position);
  // What became of a change that asks for the lease: it was made, or `made_before` of the row as it is. One
  // that is refused to its holder wants too much.
  store::Async<std::optional<Refused>> with_lease(std::string journal, std::string name, std::string lease,
                                                  store::Update change,
                                                  std::function<bool(const PartRow&)> made_before);

  store::Store& store_;
  const Clock& clock_;
  const Order& order_;
  const std::string table_;
};

}  // namespace tabella::journal

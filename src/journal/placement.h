// Gives events their positions in the order of all. It reads the stream of the heads, whose records say which
// events were appended, and writes down their positions together with how far it has read: one transaction
// that asks that nobody was faster. So every event gets exactly one position, whoever is killed when and
// however often a record comes again.
//
// All records of one head come in order, from one shard of the stream: that is why events of one entity are
// in the order of their numbers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "journal/heads.h"
#include "journal/journal.h"
#include "journal/order.h"
#include "journal/order_state.h"
#include "store/stream_reader.h"

namespace tabella::journal {

// On one thread, that of the reader of the stream; others read other shards, in this process or elsewhere.
class Placement {
 public:
  // `placed` is told of each journal that has new positions, and its last one.
  using Told = std::function<void(const std::string& journal, uint64_t last)>;
  Placement(store::Store& store, const Clock& clock, const Journal& journal, std::string order_table,
            Told placed);

  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // A batch of records of the heads' stream; throws where the store fails, to be called again.
  boost::asio::awaitable<void> handle(const std::string& shard, std::span<const store::StreamRecord> records);

 private:
  // An append: a head that was moved.
  struct Move {
    std::string sequence;  // of its record
    std::string pid;
    uint64_t first = 0;
    uint64_t count = 0;
    bool tagged = false;  // some of the events may have tags
  };
  // A place among moves: events of that one that have positions already.
  struct Place {
    size_t move = 0;
    uint64_t placed = 0;
  };
  struct Kept;   // of a journal, between batches
  struct Chunk;  // what one transaction writes
  class Tags;    // those of the events of moves

  using Moves = std::map<std::string, std::vector<Move>>;  // by journal
  static std::optional<Entity> entity_of(const store::StreamRecord& record);
  static Moves moves_of(std::span<const store::StreamRecord> records);
  static Place first_without_position(const OrderState& state, const std::string& shard,
                                      const std::vector<Move>& moves);

  std::shared_ptr<Kept> kept_of(const std::string& journal);
  boost::asio::awaitable<bool> place(const std::string& shard, const std::string& journal,
                                     const std::vector<Move>& moves);
  store::Async<bool> place_some(const std::string& shard, const std::string& journal,
                                const std::vector<Move>& moves, Tags& tags, Kept& kept);
  store::Async<OrderState> read_state(const std::string& journal);
  boost::asio::awaitable<void> look_for_shards();
  store::Async<Chunk> make_chunk(const OrderState& state, const std::vector<Move>& moves, Place from,
                                 Tags& tags) const;
  store::Async<void> commit(const std::string& journal, const OrderState& from, const OrderState& to,
                            Chunk chunk);

  store::Store& store_;
  const Clock& clock_;
  const Journal& journal_;
  const std::string order_table_;
  const Told placed_;
  std::map<std::string, std::shared_ptr<Kept>> kept_;  // by journal; shared with those who place events
  KnownShards shards_;                                 // of the heads' stream
  TimePoint shards_looked_for_;                        // when that was tried last
};

}  // namespace tabella::journal

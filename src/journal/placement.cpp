#include "journal/placement.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "journal/order_rows.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/time_slice.h"
#include "store/turns.h"

namespace tabella::journal {

using boost::asio::awaitable;
using store::Async;
using store::ErrorCode;

namespace {

constexpr size_t kRowBytes = 90'000;
constexpr size_t kTransactionBytes = 3'000'000;  // DynamoDB takes 4 MB
constexpr size_t kTransactionTags = 98;          // and 100 rows, two of which are no tag's
// How often others may be faster, or in the way, before the reader of the stream is told, which waits longer.
constexpr int kMostRaces = 50;
// How many transactions a journal has before another one's turn comes.
constexpr int kChunksInTurn = 10;
// Journals whose state is remembered; more only as long as events of theirs are being placed.
constexpr size_t kJournalsKept = 1'000;
constexpr std::chrono::hours kShardsKnown{1};

// Rows that somebody has edited or put there may have names that are longer than any key of the order may be.
// They come with every record of theirs, and are told of once.
void tell_once(std::atomic<bool>& told, std::string_view what, std::string_view name,
               std::string_view problem) {
  if (!told.exchange(true))
    log::warning("{} {} is left out of the order of events, as are others like it: {}", what,
                 printable(name.substr(0, 100)), problem);
}

void drop_bad_tags(std::vector<std::string>& tags) {
  static std::atomic<bool> told;
  std::erase_if(tags, [](const std::string& tag) {
    const auto problem = problem_with_tag(tag);
    if (!problem.empty()) tell_once(told, "the tag", tag, problem);
    return !problem.empty();
  });
  if (tags.size() > kTransactionTags) tags.resize(kTransactionTags);  // more than an append takes
}

Async<std::set<std::string>> find_shards(store::Store& store, std::string table) {
  std::vector<store::StreamSummary> streams;
  for (store::ListStreamsRequest request{.table = std::move(table)};;) {
    TABELLA_CO_ASSIGN(auto page, co_await store.list_streams(request));
    std::ranges::move(page.streams, std::back_inserter(streams));
    if (!page.last) break;
    request.start = std::move(page.last);
  }
  std::set<std::string> shards;
  for (const auto& stream : streams)
    for (store::DescribeStreamRequest request{.arn = stream.arn};;) {
      TABELLA_CO_ASSIGN(auto page, co_await store.describe_stream(request));
      for (auto& shard : page.shards) shards.insert(std::move(shard.id));
      if (!page.last_shard) break;
      request.start = std::move(page.last_shard);
    }
  co_return shards;
}

}  // namespace

struct Placement::Kept {
  store::Turns turns;               // shards of this process do not race each other
  std::optional<OrderState> state;  // as it was written last; its condition tells if it is so no more
};

struct Placement::Chunk {
  RunEncoder all{Positions::dense};
  std::map<std::string, RunEncoder> tags;
  size_t tag_bytes = 0;  // at most; counted as they are added
  uint64_t next = 0;     // the position behind the last
  std::string sequence;  // of the last record that it has events of,
  uint64_t placed = 0;   // and how many of them have positions then, if not all

  bool has_room(const std::string& pid) const { return all.size_with(pid) < kRowBytes; }
  bool has_room(const std::string& pid, const std::vector<std::string>& more) const {
    size_t bytes = all.size_with(pid) + tag_bytes;
    size_t count = tags.size();
    for (const auto& tag : more) {
      const auto known = tags.find(tag);
      if (known == tags.end()) ++count;
      if (known != tags.end() && known->second.size_with(pid) >= kRowBytes) return false;
      bytes += pid.size() + tag.size() + 128;
    }
    return has_room(pid) && count <= kTransactionTags && bytes < kTransactionBytes;
  }
  void add(const Run& run, const std::vector<std::string>& run_tags) {
    for (const auto& tag : run_tags) {
      tags.try_emplace(tag, Positions::sparse).first->second.add(run);
      tag_bytes += run.pid.size() + tag.size() + 128;
    }
    all.add(run);
    next += run.count;
  }
};

// Reads the events of a move as they are asked for, one after the other.
class Placement::Tags {
 public:
  Tags(store::Store& store, const Layout& layout, std::string journal)
      : store_(store), layout_(layout), journal_(std::move(journal)) {}

  // None of an event that is gone: whoever reads by tag would not find it either.
  Async<std::vector<std::string>> of(const Move& move, uint64_t number) {
    if (!move.tagged) co_return std::vector<std::string>();
    if (sequence_ != move.sequence || number < first_ || number >= end_)
      TABELLA_CO_TRY(co_await read(move, number));
    const auto found = tags_.find(number);
    co_return found == tags_.end() ? std::vector<std::string>() : found->second;
  }

 private:
  Async<void> read(const Move& move, uint64_t number) {
    const auto last = move.first + move.count - 1;
    Entity entity{.journal = journal_, .pid = move.pid};
    TABELLA_CO_ASSIGN(const auto step,
                      co_await layout_.read(store_, std::move(entity), number, last, Direction::forward));
    tags_.clear();
    for (const auto& event : step.events) {
      auto tags = event.tags();
      drop_bad_tags(tags);
      if (!tags.empty()) tags_.emplace(event.number(), std::move(tags));
    }
    sequence_ = move.sequence;
    first_ = number;
    end_ = step.next.value_or(last + 1);
    co_return store::Result<void>();
  }

  store::Store& store_;
  const Layout& layout_;
  const std::string journal_;
  std::string sequence_;  // of the move that was read last,
  uint64_t first_ = 0;    // from here
  uint64_t end_ = 0;      // to before here
  std::map<uint64_t, std::vector<std::string>> tags_;
};

Placement::Placement(store::Store& store, const Clock& clock, const Journal& journal, std::string order_table,
                     Told placed)
    : store_(store),
      clock_(clock),
      journal_(journal),
      order_table_(std::move(order_table)),
      placed_(std::move(placed)) {}

Placement::~Placement() = default;

std::optional<Entity> Placement::entity_of(const store::StreamRecord& record) {
  static std::atomic<bool> told;
  auto entity = Heads::entity_of(record.keys);
  if (!entity) return std::nullopt;
  auto problem = problem_with_journal(entity->journal);
  if (problem.empty()) problem = problem_with_pid(entity->pid);
  if (problem.empty()) return entity;
  tell_once(told, "the entity", fmt::format("{} of {}", entity->pid, entity->journal), problem);
  return std::nullopt;
}

Placement::Moves Placement::moves_of(std::span<const store::StreamRecord> records) {
  Moves moves;
  for (const auto& record : records) {
    auto entity = entity_of(record);
    if (!entity || !record.new_image) continue;
    const auto head = Heads::head_of(*record.new_image);
    // Those that are deleted already as their head is made, or moved, are of another program's.
    const auto before =
        std::max(record.old_image ? Heads::head_of(*record.old_image).highest : 0, head.deleted_to);
    if (head.highest <= before) continue;
    moves[entity->journal].push_back({.sequence = record.sequence,
                                      .pid = std::move(entity->pid),
                                      .first = before + 1,
                                      .count = head.highest - before,
                                      .tagged = head.tagged});
  }
  return moves;
}

// In turns: one that has very much to place does not keep the others waiting.
awaitable<void> Placement::handle(const std::string& shard, std::span<const store::StreamRecord> records) {
  for (auto moves = moves_of(records); !moves.empty();)
    for (auto at = moves.begin(); at != moves.end();)
      at = co_await place(shard, at->first, at->second) ? moves.erase(at) : std::next(at);
}

std::shared_ptr<Placement::Kept> Placement::kept_of(const std::string& journal) {
  if (const auto known = kept_.find(journal); known != kept_.end()) return known->second;
  if (kept_.size() >= kJournalsKept)
    std::erase_if(kept_, [](const auto& kept) { return kept.second.use_count() == 1; });
  return kept_.emplace(journal, std::make_shared<Kept>()).first->second;
}

// True: all of them have positions.
awaitable<bool> Placement::place(const std::string& shard, const std::string& journal,
                                 const std::vector<Move>& moves) {
  const auto kept = kept_of(journal);  // longer than the turn
  const auto turn = co_await kept->turns.take();
  Tags tags(store_, journal_.layout(), journal);
  store::TimeSlice slice;
  for (int chunks = 0, races = 0; chunks < kChunksInTurn;) {
    auto placed = co_await place_some(shard, journal, moves, tags, *kept);
    if (placed && !*placed) co_return true;
    races = placed ? 0 : races + 1;
    co_await slice.yield_if_over();
    if (placed) {
      ++chunks;
      continue;
    }
    kept->state.reset();
    if (!store::lost_a_race(placed.error()) || races == kMostRaces)
      throw std::runtime_error(
          fmt::format("events of {} get no positions: {}", journal, placed.error().message));
    co_await store::pause_for(std::chrono::microseconds(random_bits() % 2000 * static_cast<uint64_t>(races)));
  }
  co_return false;
}

// False: all of them have positions.
Async<bool> Placement::place_some(const std::string& shard, const std::string& journal,
                                  const std::vector<Move>& moves, Tags& tags, Kept& kept) {
  if (!kept.state) {
    TABELLA_CO_ASSIGN(kept.state, co_await read_state(journal));
  }
  const auto from = first_without_position(*kept.state, shard, moves);
  if (from.move == moves.size()) co_return false;
  if (kept.state->is_new) TABELLA_CO_TRY(co_await journal_.heads().add_journal(journal));
  TABELLA_CO_ASSIGN(auto chunk, co_await make_chunk(*kept.state, moves, from, tags));
  auto state = *kept.state;
  state.next = chunk.next;
  state.is_new = false;
  state.marks.insert_or_assign(
      shard, OrderMark{.sequence = chunk.sequence, .placed = chunk.placed, .time = clock_.now()});
  if (has_old_marks(state, clock_.now())) {
    co_await look_for_shards();
    forget_old_marks(state, shards_);
  }
  TABELLA_CO_TRY(co_await commit(journal, *kept.state, state, std::move(chunk)));
  kept.state = std::move(state);
  if (placed_) placed_(journal, kept.state->next - 1);
  co_return true;
}

// Without them nothing is forgotten, which can wait.
awaitable<void> Placement::look_for_shards() {
  const auto now = clock_.now();
  if (now < shards_looked_for_ + kShardsKnown) co_return;
  shards_looked_for_ = now;
  auto found = co_await find_shards(store_, journal_.heads().table());
  if (found)
    shards_ = {.names = std::move(*found), .at = now};
  else
    log::warning("the shards of {} could not be looked for: {}", journal_.heads().table(),
                 found.error().message);
}

Async<OrderState> Placement::read_state(const std::string& journal) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = order_table_, .key = order_key(journal), .consistent = true}));
  auto state = state_of(found.item);
  if (state.next == 0)
    co_return store::fail(ErrorCode::internal, "the row with the next position is damaged");
  // Others may have placed some meanwhile.
  if (placed_ && state.next > 1) placed_(journal, state.next - 1);
  co_return state;
}

Placement::Place Placement::first_without_position(const OrderState& state, const std::string& shard,
                                                   const std::vector<Move>& moves) {
  const auto mark = state.marks.find(shard);
  if (mark == state.marks.end()) return {};
  Place place;
  for (; place.move < moves.size(); ++place.move) {
    const auto compared = compare_sequences(moves[place.move].sequence, mark->second.sequence);
    if (compared == 0 && mark->second.placed > 0) place.placed = mark->second.placed;
    if (compared > 0 || place.placed > 0) break;
  }
  return place;
}

// As many as one row takes, which ends with its block.
Async<Placement::Chunk> Placement::make_chunk(const OrderState& state, const std::vector<Move>& moves,
                                              Place from, Tags& tags) const {
  Chunk chunk;
  chunk.next = state.next;
  const auto end = last_of_block(state.next) + 1;
  store::TimeSlice slice;
  for (size_t at = from.move; at < moves.size() && chunk.next < end; ++at) {
    const auto& move = moves[at];
    auto placed = at == from.move ? from.placed : 0;
    const auto before = placed;
    while (placed < move.count && chunk.next < end) {
      // Where none has tags, all of them at once.
      const auto count = move.tagged ? 1 : std::min(move.count - placed, end - chunk.next);
      TABELLA_CO_ASSIGN(const auto event_tags, co_await tags.of(move, move.first + placed));
      if (!chunk.has_room(move.pid, event_tags)) break;
      chunk.add({.position = chunk.next, .pid = move.pid, .number = move.first + placed, .count = count},
                event_tags);
      placed += count;
      co_await slice.yield_if_over();
    }
    if (placed == before) break;
    chunk.sequence = move.sequence;
    chunk.placed = placed < move.count ? placed : 0;
    if (placed < move.count) break;
  }
  co_return chunk;
}

Async<void> Placement::commit(const std::string& journal, const OrderState& from, const OrderState& to,
                              Chunk chunk) {
  std::vector<store::TransactWrite> writes;
  const auto add_row = [&](const std::string& partition, RunEncoder runs) {
    const auto first = runs.first();
    const auto bytes = std::move(runs).finish();
    writes.push_back(store::Put(order_table_, store::Row()
                                                  .set(kOrderPartition, partition)
                                                  .set(kOrderNumber, first)
                                                  .set(kOrderRuns, store::Binary{bytes}))
                         .when(store::absent(kOrderPartition)));
  };
  writes.push_back(move_order(order_table_, journal, from, to));
  add_row(all_partition(journal, from.next), std::move(chunk.all));
  for (auto& [tag, runs] : chunk.tags) add_row(tag_partition(journal, tag), std::move(runs));
  TABELLA_CO_TRY(co_await store_.transact_write_items({.writes = std::move(writes)}));
  co_return store::Result<void>();
}

}  // namespace tabella::journal

// The layout of Akka's and Pekko's plugins for DynamoDB. An event is in the block number / 100, which is a
// partition, at number % 100. A counter says the block that was begun last, by its first number; it is
// written only where one is begun.
#include <algorithm>

#include "journal/event_attributes.h"
#include "journal/layout.h"
#include "journal/layout_rows.h"
#include "journal/row_numbers.h"
#include "store/batches.h"

namespace tabella::journal {
namespace {

using item::Item;
using store::Async;
using store::Row;

constexpr uint64_t kBlockSize = 100;
constexpr size_t kDefaultBlockShards = 10;

constexpr std::string_view kBlockPartition = "par";
constexpr std::string_view kBlockPlace = "num";
constexpr std::string_view kBlockSequence = "seq";
constexpr std::string_view kBlockPersistenceId = "persistence_id";
constexpr EventAttributes kBlockAttributes{.payload = "event", .message = "pay"};

Item block_row(std::string partition, uint64_t place) {
  return Row().set(kBlockPartition, partition).set(kBlockPlace, place);
}

class BlocksLayout final : public Layout {
 public:
  explicit BlocksLayout(Options options) : Layout(std::move(options)) {}

  store::TablePlan plan() const override {
    return plan_events(
        table(), {{std::string(kBlockPartition), item::Type::S}, {std::string(kBlockPlace), item::Type::N}});
  }

  Item key_of(const Entity& entity, uint64_t number) const override {
    return block_row(key_text(entity, KeyKind::event, number / kBlockSize), number % kBlockSize);
  }

  std::string_view key_attribute() const override { return kBlockPartition; }

  Item row_of(const Entity& entity, uint64_t number, const NewEvent& event,
              const Recording& recording) const override {
    Row row;
    row.set(kBlockPartition, key_text(entity, KeyKind::event, number / kBlockSize))
        .set(kBlockPlace, number % kBlockSize)
        .set(kBlockAttributes.payload, store::Binary{event.payload})
        .set(event_attributes::kSerializer, event.serializer)
        .set(kBlockSequence, number)
        .set(kBlockPersistenceId, entity.pid);
    add_event(row, event, recording);
    return row;
  }

  Event event_of(Item row, uint64_t number) const override {
    return {std::move(row), number, kBlockAttributes};
  }

  std::optional<Located> locate(item::ItemView key) const override {
    const auto place = count_in(key, kBlockPlace);
    auto block = read_event_key(store::text_of(key, kBlockPartition));
    if (!place || *place >= kBlockSize || !block || block->number > kHighestNumber / kBlockSize)
      return std::nullopt;
    const auto number = block->number * kBlockSize + *place;
    if (number == 0 || number > kHighestNumber) return std::nullopt;
    return Located{.entity = std::move(block->entity), .number = number};
  }

  std::vector<Item> high_counters(const Entity& entity, uint64_t first, uint64_t last) const override {
    const auto block = last / kBlockSize;
    if ((first - 1) / kBlockSize == block) return {};
    return {counter(entity, KeyKind::high_counter, block, block * kBlockSize)};
  }

  std::vector<Item> low_counters(const Entity& entity, uint64_t to) const override {
    const auto lowest = to + 1;
    return {counter(entity, KeyKind::low_counter, lowest / kBlockSize, lowest)};
  }

  bool marks_deleted() const override { return false; }

  Async<Step> read(store::Store& store, Entity entity, uint64_t from, uint64_t to,
                   Direction direction) const override {
    from = std::max<uint64_t>(from, 1);
    to = std::min(to, kHighestNumber);
    if (from > to) co_return Step();
    const bool forward = direction == Direction::forward;
    const auto block = (forward ? from : to) / kBlockSize;
    const auto first = std::max(from, block * kBlockSize);
    const auto last = std::min(to, block * kBlockSize + kBlockSize - 1);
    auto query = store::Query(table())
                     .partition(kBlockPartition, key_text(entity, KeyKind::event, block))
                     .where(store::between(kBlockPlace, first % kBlockSize, last % kBlockSize))
                     .consistent();
    if (!forward) query.descending();
    TABELLA_CO_ASSIGN(auto step, co_await read_block(store, std::move(query), block));
    // First what is left of the block where it did not fit one page, then the next block.
    if (step.next && first <= *step.next && *step.next <= last) co_return step;
    step.next.reset();
    if (forward && last < to) step.next = last + 1;
    if (!forward && first > from) step.next = first - 1;
    co_return step;
  }

  Async<Counters> read_counters(store::Store& store, Entity entity) const override {
    TABELLA_CO_ASSIGN(const auto high, co_await highest_of(store, entity, KeyKind::high_counter));
    TABELLA_CO_ASSIGN(const auto lowest, co_await highest_of(store, entity, KeyKind::low_counter));
    co_return Counters{.high = high, .deleted_to = lowest > 0 ? lowest - 1 : 0};
  }

 private:
  Item counter(const Entity& entity, KeyKind kind, uint64_t block, uint64_t value) const {
    return Row()
        .set(kBlockPartition, key_text(entity, kind, block % options_.sequence_shards))
        .set(kBlockPlace, 0)
        .set(kBlockSequence, value);
  }

  // One page, which is a block unless its events are large: then `next` says where the rest begins. A page
  // without any event, which is none that we or Pekko wrote, is passed over.
  static Async<Step> read_block(store::Store& store, store::QueryRequest request, uint64_t block) {
    Step step;
    while (true) {
      TABELLA_CO_ASSIGN(auto page, co_await store.query(request));
      step.events.reserve(page.items.size());
      for (auto& row : page.items)
        if (const auto place = count_in(row, kBlockPlace))
          step.events.emplace_back(std::move(row), block * kBlockSize + *place, kBlockAttributes);
      if (!page.last_key) co_return step;
      if (!step.events.empty()) {
        const auto last = step.events.back().number();
        step.next = request.forward ? last + 1 : last - 1;
        co_return step;
      }
      request.options.start_key = std::move(page.last_key);
    }
  }

  Async<uint64_t> highest_of(store::Store& store, Entity entity, KeyKind kind) const {
    std::vector<Item> keys;
    for (size_t shard = 0; shard < options_.sequence_shards; ++shard)
      keys.push_back(block_row(key_text(entity, kind, shard), 0));
    TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(store, table(), std::move(keys)));
    uint64_t highest = 0;
    for (const auto& row : rows) highest = std::max(highest, count_in(row, kBlockSequence).value_or(0));
    co_return highest;
  }
};

}  // namespace

std::unique_ptr<Layout> make_blocks_layout(Layout::Options options) {
  if (options.sequence_shards == 0) options.sequence_shards = kDefaultBlockShards;
  return std::make_unique<BlocksLayout>(std::move(options));
}

}  // namespace tabella::journal

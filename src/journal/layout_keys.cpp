// The older layout with a hash key only: every event is a partition of its own, and so is every counter. The
// payload of another program's event is a PersistentMessage; ours is the event as it is.
//
// An append writes one counter for its last number: the highest of all is what counts, and several could fall
// on the same shard, which no transaction takes.
//
// A counter of deleted events has the number of one that was deleted. Other programs write one for each that
// they delete, not always from the first on, and read from the lowest of all, which is safe whatever we
// write. We write the last number only, and `all`: everything up to it is deleted.
#include <algorithm>
#include <set>

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

constexpr size_t kDefaultKeyShards = 1000;
constexpr uint64_t kEventsPerStep = 100;  // as many as DynamoDB gets at once

constexpr std::string_view kEventKey = "key";
constexpr std::string_view kKeySequence = "sequenceNr";
constexpr std::string_view kAllDeleted = "all";
constexpr EventAttributes kKeyAttributes{.payload = "payload", .message = "payload"};

// How far everything is deleted: up to where we say so, and on from there (or from the first) by the numbers
// that others have left. Where those have gone round all shards, the last of them are left, one to a shard.
uint64_t deleted_to_of(const std::vector<Item>& counters, size_t shards) {
  uint64_t deleted_to = 0;
  std::set<uint64_t> numbers;
  for (const auto& counter : counters) {
    const auto number = count_in(counter, kKeySequence).value_or(0);
    if (number == 0) continue;
    numbers.insert(number);
    if (store::flag_of(counter, kAllDeleted)) deleted_to = std::max(deleted_to, number);
  }
  if (numbers.size() == shards && *numbers.rbegin() - *numbers.begin() == shards - 1)
    deleted_to = std::max(deleted_to, *numbers.rbegin());
  while (numbers.contains(deleted_to + 1)) ++deleted_to;
  return deleted_to;
}

class KeysLayout final : public Layout {
 public:
  explicit KeysLayout(Options options) : Layout(std::move(options)) {}

  store::TablePlan plan() const override {
    return plan_events(table(), {{std::string(kEventKey), item::Type::S}});
  }

  Item key_of(const Entity& entity, uint64_t number) const override {
    return Row().set(kEventKey, key_text(entity, KeyKind::event, number));
  }

  std::string_view key_attribute() const override { return kEventKey; }

  Item row_of(const Entity& entity, uint64_t number, const NewEvent& event,
              const Recording& recording) const override {
    Row row;
    row.set(kEventKey, key_text(entity, KeyKind::event, number))
        .set(kKeyAttributes.payload, store::Binary{event.payload})
        .set(kKeySequence, number)
        .set(event_attributes::kDeleted, "false");
    if (event.serializer != kByteArraySerializer) row.set(event_attributes::kSerializer, event.serializer);
    add_event(row, event, recording);
    return row;
  }

  Event event_of(Item row, uint64_t number) const override {
    return {std::move(row), number, kKeyAttributes};
  }

  std::optional<Located> locate(item::ItemView key) const override {
    auto found = read_event_key(store::text_of(key, kEventKey));
    if (!found || found->number == 0) return std::nullopt;
    return Located{.entity = std::move(found->entity), .number = found->number};
  }

  std::vector<Item> high_counters(const Entity& entity, uint64_t /*first*/, uint64_t last) const override {
    return {counter(entity, KeyKind::high_counter, last)};
  }

  std::vector<Item> low_counters(const Entity& entity, uint64_t to) const override {
    return {counter(entity, KeyKind::low_counter, to).set(kAllDeleted, true)};
  }

  bool marks_deleted() const override { return true; }

  Async<Step> read(store::Store& store, Entity entity, uint64_t from, uint64_t to,
                   Direction direction) const override {
    from = std::max<uint64_t>(from, 1);
    to = std::min(to, kHighestNumber);
    if (from > to) co_return Step();
    const bool forward = direction == Direction::forward;
    const auto more = std::min(to - from, kEventsPerStep - 1);
    const auto first = forward ? from : to - more;
    const auto last = first + more;
    TABELLA_CO_ASSIGN(Step step, co_await read_range(store, std::move(entity), first, last));
    if (!forward) std::ranges::reverse(step.events);
    if (forward && last < to) step.next = last + 1;
    if (!forward && first > from) step.next = first - 1;
    co_return step;
  }

  Async<Counters> read_counters(store::Store& store, Entity entity) const override {
    TABELLA_CO_ASSIGN(const auto high, co_await read_shards(store, entity, KeyKind::high_counter));
    TABELLA_CO_ASSIGN(const auto low, co_await read_shards(store, entity, KeyKind::low_counter));
    Counters counters{.high = 0, .deleted_to = deleted_to_of(low, options_.sequence_shards)};
    for (const auto& row : high)
      counters.high = std::max(counters.high, count_in(row, kKeySequence).value_or(0));
    co_return counters;
  }

 private:
  Row counter(const Entity& entity, KeyKind kind, uint64_t number) const {
    Row row;
    row.set(kEventKey, key_text(entity, kind, number % options_.sequence_shards)).set(kKeySequence, number);
    return row;
  }

  // In order.
  Async<Step> read_range(store::Store& store, Entity entity, uint64_t first, uint64_t last) const {
    std::vector<Item> keys;
    keys.reserve(last - first + 1);
    for (auto number = first; number <= last; ++number) keys.push_back(key_of(entity, number));
    TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store, table(), std::move(keys)));
    Step step;
    step.events.reserve(rows.size());
    for (auto& row : rows) {
      const auto number = last_number(row.find(kEventKey)->content());
      step.events.emplace_back(std::move(row), number.value_or(0), kKeyAttributes);
    }
    std::ranges::sort(step.events, {}, &Event::number);
    co_return step;
  }

  Async<std::vector<Item>> read_shards(store::Store& store, Entity entity, KeyKind kind) const {
    std::vector<Item> keys;
    for (size_t shard = 0; shard < options_.sequence_shards; ++shard)
      keys.push_back(Row().set(kEventKey, key_text(entity, kind, shard)));
    return store::get_all(store, table(), std::move(keys));
  }
};

}  // namespace

std::unique_ptr<Layout> make_keys_layout(Layout::Options options) {
  if (options.sequence_shards == 0) options.sequence_shards = kDefaultKeyShards;
  return std::make_unique<KeysLayout>(std::move(options));
}

}  // namespace tabella::journal

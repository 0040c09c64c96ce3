#include "journal/order_state.h"

#include <algorithm>

#include "journal/order_rows.h"

namespace tabella::journal {
namespace {

constexpr const char* kMarkSequence = "sequence";
constexpr const char* kMarkPlaced = "placed";
constexpr const char* kMarkTime = "time";
constexpr std::chrono::hours kMarkIsOld{24};

item::Value to_value(const std::map<std::string, OrderMark>& marks) {
  auto value = item::Value::map();
  for (const auto& [shard, mark] : marks) {
    auto entry = item::Value::map();
    entry.set_member(kMarkSequence, item::Value::string(mark.sequence));
    if (mark.placed > 0)
      entry.set_member(kMarkPlaced, item::Value::integer(static_cast<int64_t>(mark.placed)));
    entry.set_member(kMarkTime, item::Value::integer(epoch_milliseconds(mark.time)));
    value.set_member(shard, std::move(entry));
  }
  return value;
}

int64_t integer_of(item::ValueView map, std::string_view name) {
  const auto value = map.member(name);
  return value && value->type() == item::Type::N ? item::number_to_int(value->content()).value_or(0) : 0;
}

OrderMark to_mark(item::ValueView entry) {
  const auto sequence = entry.member(kMarkSequence);
  return {.sequence = sequence && sequence->type() == item::Type::S ? std::string(sequence->content()) : "",
          .placed = static_cast<uint64_t>(integer_of(entry, kMarkPlaced)),
          .time = time_at(integer_of(entry, kMarkTime))};
}

bool is_old_mark(const OrderMark& mark, TimePoint now) { return mark.time + kMarkIsOld < now; }

std::string_view without_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

OrderState state_of(const std::optional<item::Item>& row) {
  OrderState state;
  if (!row) return state;
  state.is_new = false;
  state.next = static_cast<uint64_t>(store::number_of(*row, kOrderNext));
  const auto shards = row->find(kOrderShards);
  if (!shards || shards->type() != item::Type::M) return state;
  for (item::Elements entries(*shards); entries.next();)
    if (entries.value().type() == item::Type::M)
      state.marks.emplace(entries.name(), to_mark(entries.value()));
  return state;
}

store::Update move_order(const std::string& table, const std::string& journal, const OrderState& from,
                         const OrderState& to) {
  return store::Update(table, order_key(journal))
      .set(kOrderNext, to.next)
      .set(kOrderShards, to_value(to.marks))
      .when(from.is_new ? store::absent(kOrderPartition) : store::equals(kOrderNext, from.next));
}

bool has_old_marks(const OrderState& state, TimePoint now) {
  return std::ranges::any_of(state.marks, [now](const auto& mark) { return is_old_mark(mark.second, now); });
}

// Old when the shards were looked for: those of newer ones may not have been there.
void forget_old_marks(OrderState& state, const KnownShards& shards) {
  std::erase_if(state.marks, [&](const auto& mark) {
    return is_old_mark(mark.second, shards.at) && !shards.names.contains(mark.first);
  });
}

int compare_sequences(std::string_view a, std::string_view b) {
  a = without_zeros(a);
  b = without_zeros(b);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace tabella::journal

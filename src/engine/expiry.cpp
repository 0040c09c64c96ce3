#include "engine/expiry.h"

#include <algorithm>
#include <charconv>

#include "engine/keys.h"
#include "item/number.h"

namespace tabella::engine {
namespace {

constexpr size_t kSliceBytes = 1u << 20;
constexpr uint64_t kFiveYears = uint64_t{5} * 365 * 24 * 60 * 60;

uint64_t seconds(TimePoint at) { return static_cast<uint64_t>(epoch_milliseconds(at) / 1000); }

std::optional<std::string> entry_of(const TableSchema& table, const std::string& key,
                                    const std::optional<item::Item>& item) {
  if (!item) return std::nullopt;
  const auto due = due_second(*table.expiry, *item);
  if (!due) return std::nullopt;
  return keys::expiry(table.expiry->id, *due, key);
}

}  // namespace

std::optional<uint64_t> due_second(const Expiry& expiry, item::ItemView item) {
  const auto value = item.find(expiry.attribute);
  if (!value || value->type() != item::Type::N) return std::nullopt;
  const auto text = item::number_text(value->content());
  uint64_t due = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), due);
  const bool whole = end == text.data() + text.size() || *end == '.';
  if (error != std::errc{} || !whole) return std::nullopt;
  return due;
}

void write_expiry(WriteContext& context, const TableSchema& table, const ItemChange& change) {
  if (!table.expiry) return;
  const auto old = entry_of(table, change.key, change.old);
  const auto now = entry_of(table, change.key, change.now);
  if (old == now) return;
  if (old) context.batch().remove(*old);
  if (!now) return;
  put_expiry_entry(context, *table.expiry, *now);
}

void put_expiry_entry(WriteContext& context, const Expiry& expiry, const std::string& entry) {
  context.batch().put(entry, {});
  *expiry.swept_to = std::min(*expiry.swept_to, entry);
  context.note_expiry(expiry.id, entry);
}

void remove_expiry_entries(WriteContext& context, const Expiry& expiry) {
  const auto prefix = keys::expiries_of(expiry.id);
  context.batch().remove_range(prefix, keys::end_of(prefix));
}

SweepResult sweep_expired(WriteContext& context, const TableSchema& table, size_t most) {
  const auto& expiry = *table.expiry;
  const auto now = seconds(context.now());
  auto& swept_to = *expiry.swept_to;
  const auto end = keys::expiries_from(expiry.id, now + 1);
  auto from = std::max(swept_to, keys::expiries_from(expiry.id, now - std::min(now, kFiveYears)));
  if (from >= end) return {};
  context.restore_on_undo(swept_to);
  SweepResult swept;
  auto cursor = context.database().range(std::move(from), end, Database::Direction::forward, false);
  size_t bytes = 0;
  for (; cursor.valid() && most > 0 && bytes < kSliceBytes; cursor.next(), --most) {
    // The entries may be those of before a change that is on its way: the item as it is now decides.
    ItemChange change{.key = keys::item_of_expiry(table.id, cursor.key()), .by_service = true};
    auto stored = context.get(change.key);
    if (!stored) continue;
    bytes += stored->size();
    change.old = item::Item(std::move(*stored));
    if (due_second(expiry, *change.old) != keys::due_of(cursor.key())) continue;
    write_change(context, table, change, nullptr);
    ++swept.deleted;
  }
  swept.more = cursor.valid();
  if (swept.more) swept.behind = now - keys::due_of(cursor.key());
  swept_to = swept.more ? std::string(cursor.key()) : end;
  if (const auto* uncommitted = context.uncommitted_expiry(expiry.id))
    swept_to = std::min(swept_to, *uncommitted);
  return swept;
}

}  // namespace tabella::engine

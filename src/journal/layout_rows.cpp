#include "journal/layout_rows.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "journal/event_attributes.h"

namespace tabella::journal {
namespace {

std::string_view key_mark(KeyKind kind) {
  switch (kind) {
    case KeyKind::event: return "-P-";
    case KeyKind::high_counter: return "-SH-";
    case KeyKind::low_counter: return "-SL-";
  }
  return {};
}

// DynamoDB may remove a row any time after its second: never before the time that was asked for.
int64_t seconds_not_before(TimePoint time) {
  return std::chrono::ceil<std::chrono::seconds>(time.time_since_epoch()).count();
}

// A set has no element twice.
std::vector<std::string> without_repeats(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  const auto [first, last] = std::ranges::unique(texts);
  texts.erase(first, last);
  return texts;
}

}  // namespace

std::string key_text(const Entity& entity, KeyKind kind, uint64_t number) {
  return fmt::format("{}{}{}-{}", entity.journal, key_mark(kind), entity.pid, number);
}

std::optional<EventKey> read_event_key(std::string_view text) {
  const auto mark = text.find(key_mark(KeyKind::event));
  const auto counters =
      std::min(text.find(key_mark(KeyKind::high_counter)), text.find(key_mark(KeyKind::low_counter)));
  if (mark == std::string_view::npos || mark == 0 || counters < mark) return std::nullopt;
  const auto begin = mark + key_mark(KeyKind::event).size();
  const auto end = text.rfind('-');
  const auto number = last_number(text);
  if (!number || end <= begin) return std::nullopt;
  return EventKey{.entity = {.journal = std::string(text.substr(0, mark)),
                             .pid = std::string(text.substr(begin, end - begin))},
                  .number = *number};
}

std::optional<uint64_t> last_number(std::string_view key) {
  const auto digits = key.substr(key.rfind('-') + 1);
  if (digits.empty() || (digits.front() == '0' && digits.size() > 1)) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number > kHighestNumber)
    return std::nullopt;
  return number;
}

void add_event(store::Row& row, const NewEvent& event, const Recording& recording) {
  namespace names = event_attributes;
  row.set(names::kWriter, recording.append_id).set(names::kTime, epoch_milliseconds(recording.time));
  if (!event.manifest.empty()) row.set(names::kSerializerManifest, event.manifest);
  if (recording.place)
    row.set(names::kBatchIndex, recording.place->index).set(names::kBatchLast, recording.place->last);
  if (!event.id.empty()) row.set(names::kId, event.id);
  if (!event.type.empty()) row.set(names::kType, event.type);
  if (!event.metadata.empty()) row.set(names::kMetadata, event.metadata);
  if (!event.tags.empty()) row.set(names::kTags, without_repeats(event.tags));
  if (recording.epoch > 0) row.set(names::kEpoch, recording.epoch);
  if (recording.expires) row.set(names::kExpires, seconds_not_before(*recording.expires));
  if (event.is_json) row.set(names::kIsJson, true);
}

store::TablePlan plan_events(const std::string& table, std::vector<store::AttributeDefinition> keys) {
  auto plan = store::plan_table(table, std::move(keys), std::string(event_attributes::kExpires));
  plan.definition.stream = store::StreamView::keys_only;
  return plan;
}

}  // namespace tabella::journal

#include "journal/event.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"
#include "item/number.h"
#include "journal/event_attributes.h"

namespace tabella::journal {

using item::Type;

namespace {

constexpr bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

constexpr bool is_name_character(char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; }

bool has_control_character(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(1))
    if (control_length(text) > 0) return true;
  return false;
}

std::string problem_with_text(std::string_view what, std::string_view text, size_t longest) {
  if (text.empty()) return fmt::format("{} must not be empty", what);
  if (text.size() > longest)
    return fmt::format("{} may have {} bytes at most, and this one has {}", what, longest, text.size());
  if (!is_valid_utf8(text)) return fmt::format("{} must be valid UTF-8", what);
  if (has_control_character(text)) return fmt::format("{} must not have control characters", what);
  return {};
}

// The next character of valid UTF-8.
uint32_t take_character(std::string_view& text) {
  const auto first = static_cast<uint8_t>(text.front());
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  uint32_t character = length == 1 ? first : first & (0x7fu >> length);
  for (const char byte : text.substr(1, length - 1)) character = character << 6 | (byte & 0x3f);
  text.remove_prefix(length);
  return character;
}

// As Java's String.hashCode has it, over units of UTF-16.
int32_t java_hash(std::string_view valid) {
  uint32_t hash = 0;
  const auto add = [&hash](uint32_t unit) { hash = hash * 31 + unit; };
  while (!valid.empty()) {
    const auto character = take_character(valid);
    if (character < 0x10000) {
      add(character);
    } else {
      add(0xd800 + ((character - 0x10000) >> 10));
      add(0xdc00 + (character & 0x3ff));
    }
  }
  return static_cast<int32_t>(hash);
}

}  // namespace

// The rest of the name may not be read as what follows it in a key: "<journal>-P-<pid>-…".
std::string problem_with_journal(std::string_view name) {
  if (auto problem = problem_with_text("the name of a journal", name, kLongestJournal); !problem.empty())
    return problem;
  if (!std::ranges::all_of(name, is_name_character) || !is_letter_or_digit(name.front()) ||
      !is_letter_or_digit(name.back()))
    return "the name of a journal is made of letters, digits, '.', '_' and '-', and begins and ends with a "
           "letter or a digit";
  for (const std::string_view mark : {"-P", "-SH", "-SL"})
    if (name.ends_with(mark) || name.contains(fmt::format("{}-", mark)))
      return fmt::format(
          "the name of a journal must not have '{0}-' in it nor end with '{0}': keys in the table have that "
          "behind the name",
          mark);
  return {};
}

std::string problem_with_pid(std::string_view pid) {
  return problem_with_text("a persistence id", pid, kLongestPid);
}

std::string problem_with_tag(std::string_view tag) { return problem_with_text("a tag", tag, kLongestTag); }

int slice_of(std::string_view pid) {
  const int32_t hash = is_valid_utf8(pid) ? java_hash(pid) : java_hash(to_valid_utf8(pid));
  return std::abs(hash % kSlices);
}

Event::Event(item::Item row, uint64_t number, const EventAttributes& names)
    : row_(std::move(row)), number_(number), message_is_payload_(names.message == names.payload) {
  const auto* begin = row_.bytes().data();
  for (item::Attributes each(row_); each.next();) {
    const auto field = field_of(each.name(), names);
    if (field == kFields) continue;
    const auto bytes = each.value().bytes();
    places_[field] = {.offset = static_cast<uint32_t>(bytes.data() - begin),
                      .size = static_cast<uint32_t>(bytes.size())};
  }
}

Event::Field Event::field_of(std::string_view name, const EventAttributes& names) {
  namespace all = event_attributes;
  static constexpr std::pair<std::string_view, Field> kNames[] = {{all::kSerializer, kSerializer},
                                                                  {all::kWriter, kWriter},
                                                                  {all::kTime, kTime},
                                                                  {all::kType, kType},
                                                                  {all::kIsJson, kIsJson},
                                                                  {all::kTags, kTags},
                                                                  {all::kMetadata, kMetadata},
                                                                  {all::kEpoch, kEpoch},
                                                                  {all::kExpires, kExpires},
                                                                  {all::kId, kId},
                                                                  {all::kBatchIndex, kIndex},
                                                                  {all::kBatchLast, kLast},
                                                                  {all::kDeleted, kDeleted},
                                                                  {all::kSerializerManifest, kManifest},
                                                                  {all::kConfirmations, kConfirmations}};
  if (name == names.payload) return kPayload;
  if (name == names.message) return kMessage;
  for (const auto& [known, field] : kNames)
    if (known == name) return field;
  return kFields;
}

std::optional<item::ValueView> Event::value(Field field) const {
  const auto place = places_[field];
  if (place.size == 0) return std::nullopt;
  return item::ValueView(std::string_view(row_.bytes()).substr(place.offset, place.size));
}

std::string_view Event::text(Field field) const {
  const auto found = value(field);
  return found && found->type() == Type::S ? found->content() : std::string_view();
}

std::optional<int64_t> Event::integer(Field field) const {
  const auto found = value(field);
  return found && found->type() == Type::N ? item::number_to_int(found->content()) : std::nullopt;
}

std::optional<uint64_t> Event::count(Field field) const {
  const auto number = integer(field);
  return number && *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

std::vector<std::string> Event::strings(Field field) const {
  const auto found = value(field);
  if (!found || found->type() != Type::SS) return {};
  const auto contents = item::ordered_contents(*found);
  return {contents.begin(), contents.end()};
}

// Of rows that another program wrote in the older form.
std::optional<PersistentMessage> Event::message() const {
  if (message_is_payload_ ? is_ours() : value(kPayload).has_value()) return std::nullopt;
  const auto found = value(message_is_payload_ ? kPayload : kMessage);
  if (!found || found->type() != Type::B) return std::nullopt;
  return read_persistent_message(found->content());
}

std::string_view Event::payload() const {
  if (const auto old = message()) return old->payload;
  const auto found = value(kPayload);
  return found && found->type() == Type::B ? found->content() : std::string_view();
}

bool Event::is_json() const {
  const auto found = value(kIsJson);
  return found && found->type() == Type::BOOL && found->boolean();
}

std::string_view Event::type() const { return text(kType); }
std::string_view Event::metadata() const { return text(kMetadata); }

std::string Event::id() const {
  if (const auto given = text(kId); !given.empty()) return std::string(given);
  const auto by = writer();
  return by.empty() ? fmt::format("{}", number_) : fmt::format("{}-{}", by, number_);
}

std::vector<std::string> Event::tags() const { return strings(kTags); }
std::vector<std::string> Event::confirmations() const { return strings(kConfirmations); }

int64_t Event::serializer() const {
  if (const auto found = integer(kSerializer)) return *found;
  const auto old = message();
  return old ? old->serializer : kByteArraySerializer;
}

std::string_view Event::manifest() const {
  if (const auto found = text(kManifest); !found.empty()) return found;
  const auto old = message();
  return old ? old->serializer_manifest : std::string_view();
}

std::string_view Event::writer() const {
  if (const auto found = text(kWriter); !found.empty()) return found;
  const auto old = message();
  return old ? old->writer : std::string_view();
}

std::optional<TimePoint> Event::time() const {
  if (const auto at = integer(kTime)) return time_at(*at);
  const auto old = message();
  return old && old->timestamp != 0 ? std::optional(time_at(old->timestamp)) : std::nullopt;
}

uint64_t Event::epoch() const { return count(kEpoch).value_or(0); }

std::optional<TimePoint> Event::expires() const {
  const auto seconds = integer(kExpires);
  if (!seconds) return std::nullopt;
  constexpr int64_t kMost = INT64_MAX / 1000;
  return time_at(std::clamp(*seconds, -kMost, kMost) * 1000);
}

std::string_view Event::append_id() const { return is_ours() ? text(kWriter) : std::string_view(); }

bool Event::is_deleted() const {
  if (text(kDeleted) == "true") return true;
  const auto old = message();
  return old && old->deleted;
}

std::optional<Event::BatchPlace> Event::batch_place() const {
  const auto index = count(kIndex);
  const auto last = count(kLast);
  if (!index || !last || *last < *index) return std::nullopt;
  return BatchPlace{.index = *index, .last = *last};
}

std::optional<Event::Batch> Event::foreign_batch() const {
  const auto place = batch_place();
  if (!place || !append_id().empty() || place->index >= number_ || place->last >= kMostInBatch)
    return std::nullopt;
  const auto first = number_ - place->index;
  return Batch{.first = first, .last = first + place->last};
}

}  // namespace tabella::journal

#include "journal/foreign_rows.h"

#include <fmt/format.h>

#include "store/rows.h"

namespace tabella::journal {

using store::Row;

namespace {

constexpr uint64_t kForeignShards = 10;

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>((number & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::string field(char tag, const std::string& bytes) { return tag + varint(bytes.size()) + bytes; }

// A PersistentMessage: its payload with the serializer for arrays of bytes, and its number.
std::string message_of(const std::string& payload, uint64_t number) {
  return field(0x0a, "\x08\x04" + field(0x12, payload)) + "\x10" + varint(number);
}

item::Item block_counter(const Entity& entity, const char* what, uint64_t number, uint64_t value) {
  return Row()
      .set("par", fmt::format("{}-{}-{}-{}", entity.journal, what, entity.pid, number / 100 % kForeignShards))
      .set("num", 0)
      .set("seq", value);
}

item::Item key_counter(const Entity& entity, const char* what, uint64_t number) {
  return Row()
      .set("key", fmt::format("{}-{}-{}-{}", entity.journal, what, entity.pid, number % kForeignShards))
      .set("sequenceNr", number);
}

}  // namespace

std::string name_of(Kind kind) { return kind == Kind::blocks ? "blocks" : "keys"; }

std::unique_ptr<Layout> layout_of(Kind kind, const std::string& table) {
  const Layout::Options options{.table = table, .sequence_shards = kForeignShards};
  return kind == Kind::blocks ? make_blocks_layout(options) : make_keys_layout(options);
}

std::vector<item::Item> foreign_rows(Kind kind, const Entity& entity, uint64_t number,
                                     std::optional<Event::BatchPlace> place) {
  const auto payload = std::to_string(number);
  Row row;
  if (kind == Kind::keys) {
    row.set("key", fmt::format("{}-P-{}-{}", entity.journal, entity.pid, number))
        .set("payload", store::Binary{message_of(payload, number)})
        .set("sequenceNr", number)
        .set("deleted", "false");
    return {row, key_counter(entity, "SH", number)};
  }
  row.set("par", fmt::format("{}-P-{}-{}", entity.journal, entity.pid, number / 100))
      .set("num", number % 100)
      .set("persistence_id", entity.pid)
      .set("seq", number)
      .set("event", store::Binary{payload})
      .set("ev_ser_id", 4)
      .set("writer_uuid", kForeignWriter);
  if (place) row.set("idx", place->index).set("cnt", place->last);
  if (number % 100 != 0) return {row};
  return {row, block_counter(entity, "SH", number, number)};
}

std::vector<item::Item> foreign_low_rows(Kind kind, const Entity& entity, uint64_t lowest) {
  if (kind == Kind::blocks) return {block_counter(entity, "SL", lowest, lowest)};
  std::vector<item::Item> rows;
  for (uint64_t number = 1; number < lowest; ++number) rows.push_back(key_counter(entity, "SL", number));
  return rows;
}

}  // namespace tabella::journal

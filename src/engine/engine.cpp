#include "engine/engine.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kItemCacheBytes = 64u << 20;

std::string encode_number(uint64_t value) {
  std::string bytes;
  put_varint(bytes, value);
  return bytes;
}

}  // namespace

Engine::Engine(const Options& options, const Clock& clock)
    : clock_(clock),
      database_(options.folder, options.durability),
      items_(database_, kItemCacheBytes),
      writer_(database_, items_, catalogue_) {
  check_format();
  load_catalogue();
}

Engine::~Engine() {
  try {
    close();
  } catch (const std::exception& error) {
    log::error("the store did not close well: {}", error.what());
  }
}

void Engine::close() {
  writer_.stop();
  database_.close();
}

void Engine::check_format() {
  const auto key = keys::meta("format");
  if (const auto stored = database_.get(key)) {
    std::string_view in = *stored;
    if (const auto format = take_varint(in); format > kFormat)
      throw std::runtime_error(fmt::format(
          "the data folder was written by a newer version (format {}; this one knows {}); use that version",
          format, kFormat));
    return;
  }
  Batch batch;
  batch.put(key, encode_number(kFormat));
  database_.write(batch);
}

void Engine::load_catalogue() {
  const auto prefix = keys::catalogue_entry("");
  auto cursor = database_.range(prefix, keys::end_of(prefix), Database::Direction::forward, false);
  std::vector<std::pair<SchemaPtr, size_t>> unfinished;
  for (; cursor.valid(); cursor.next()) {
    auto table = std::make_shared<TableSchema>(decode_schema(cursor.value()));
    const auto load_counters = [&](uint32_t id, Counters& counters) {
      if (const auto stored = database_.get(keys::counters(id))) decode_counters(*stored, counters);
    };
    load_counters(table->id, *table->counters);
    for (size_t i = 0; i < table->indexes.size(); ++i) {
      load_counters(table->indexes[i].id, *table->indexes[i].counters);
      if (table->indexes[i].status != store::Status::creating) continue;
      table->indexes[i].filled_to = std::make_shared<std::string>();
      unfinished.emplace_back(table, i);
    }
    catalogue_.put(std::move(table));
  }
  if (const auto stored = database_.get(keys::meta("next_id"))) {
    std::string_view in = *stored;
    next_id_ = static_cast<uint32_t>(take_varint(in));
  }
  for (const auto& [table, i] : unfinished) start_backfill(*table, table->indexes[i]);
}

// Ids are never used twice, so what a dropped table leaves behind cannot meet a new one.
uint32_t Engine::take_id(WriteContext& context) {
  const uint32_t id = next_id_++;
  context.batch().put(keys::meta("next_id"), encode_number(next_id_));
  return id;
}

}  // namespace tabella::engine

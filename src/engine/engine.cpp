#include "engine/engine.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {
namespace {

// 2: streams, expiry entries and tokens, which an older version would not keep.
constexpr uint64_t kFormat = 2;
constexpr size_t kItemCacheBytes = 64u << 20;

uint64_t min_free(const Engine::Options& options) {
  constexpr uint64_t kMost = 256u << 20;
  if (options.min_free) return *options.min_free;
  std::error_code error;
  const auto disk = std::filesystem::space(options.folder, error);
  return error ? 0 : std::min<uint64_t>(disk.capacity / 10, kMost);
}

}  // namespace

Engine::Engine(const Options& options, const Clock& clock)
    : clock_(clock),
      opened_at_(clock.now()),
      opened_(clock.elapsed()),
      long_work_(options.long_work),
      database_({.folder = options.folder,
                 .durability = options.durability,
                 .max_open_files = options.max_open_files,
                 .faults = options.faults}),
      items_(database_, kItemCacheBytes),
      reclaim_(database_),
      scrub_(database_, options.folder),
      writer_(Stored{database_, items_, catalogue_, streams_, clock_, &reclaim_}, min_free(options)) {
  check_format();
  load_streams();
  load_catalogue();
  writer_.run_in_time([this](WriteContext& context, bool busy) { return run_housekeeping(context, busy); },
                      [this] { recover(); });
}

std::string Engine::problem() const {
  auto problem = writer_.problem();
  return problem.empty() ? scrub_.damage() : problem;
}

// Whatever is in memory may tell of changes that never reached the disk.
void Engine::recover() {
  database_.reopen();
  items_.clear();
  for (const auto& stream : streams_.all())
    for (const auto& shard : stream->shards) shard.tail->waiters.wake();
  tokens_forgotten_to_.clear();
  load_streams();
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
  scrub_.stop();
  reclaim_.stop();
  database_.close();
}

void Engine::check_format() {
  const auto key = keys::meta("format");
  uint64_t format = 0;
  if (const auto stored = database_.get(key)) {
    std::string_view in = *stored;
    format = take_varint(in);
  }
  if (format > kFormat)
    throw std::runtime_error(fmt::format(
        "the data folder was written by a newer version (format {}; this one knows {}); use that version",
        format, kFormat));
  if (format == kFormat) return;
  Batch batch;
  batch.put(key, encode_number(kFormat));
  database_.write(batch);
}

void Engine::load_catalogue() {
  const auto prefix = keys::catalogue_entry("");
  auto cursor = database_.range(prefix, keys::end_of(prefix), Database::Direction::forward, false);
  std::vector<SchemaPtr> all;
  std::vector<std::pair<SchemaPtr, size_t>> unfinished;
  std::vector<SchemaPtr> unfilled;
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
    if (table->expiry) *table->expiry->swept_to = keys::expiries_of(table->expiry->id);
    if (table->expiry && !table->expiry->filled) unfilled.push_back(table);
    all.push_back(std::move(table));
  }
  catalogue_.replace(all);
  if (const auto stored = database_.get(keys::meta("next_id"))) {
    std::string_view in = *stored;
    next_id_ = static_cast<uint32_t>(take_varint(in));
  }
  for (const auto& [table, i] : unfinished) start_backfill(*table, table->indexes[i]);
  for (const auto& table : unfilled) start_filling_expiry(*table);
}

void Engine::load_streams() {
  if (const auto stored = database_.get(keys::meta("sequence"))) {
    std::string_view in = *stored;
    streams_.set_sequence(take_varint(in));
  }
  std::vector<StreamPtr> all;
  const auto prefix = keys::stream_entries();
  auto cursor = database_.range(prefix, keys::end_of(prefix), Database::Direction::forward, false);
  for (; cursor.valid(); cursor.next()) {
    auto stream = std::make_shared<StreamSchema>(decode_stream(cursor.value()));
    for (auto& shard : stream->shards) {
      const auto records = keys::records_of(stream->id, shard.first);
      const auto last = database_.range(records, keys::end_of(records), Database::Direction::backward, false);
      shard.tail->last = last.valid() ? keys::sequence_of(last.key()) : shard.first;
    }
    streams_.take_label_time(stream->created);
    all.push_back(std::move(stream));
  }
  streams_.replace(all);
}

store::Async<void> Engine::execute(std::span<WriteAction* const> actions, Writer::Mutation mutation) {
  constexpr int kTries = 10;
  const size_t most = kMostInWriter / std::max<size_t>(actions.size(), 1);
  for (int i = 0; i < kTries; ++i) {
    bool ready = true;
    auto executed = co_await writer_.execute([&](WriteContext& context) {
      for (auto* action : actions) ready = can_run_in_writer(context, *action, most) && ready;
      if (ready) mutation(context);
    });
    if (!executed || ready) co_return executed;
    co_await long_work_.run([&] {
      for (auto* action : actions) precompute(*action);
      return true;
    });
  }
  co_return store::fail(store::ErrorCode::throttled,
                        "The item is changed too often by others to evaluate so large a request on it");
}

store::Async<store::WriteResult> Engine::write(WriteAction& action, const store::WriteOptions& options) {
  store::Result<store::WriteResult> result;
  WriteAction* const actions[] = {&action};
  auto executed = co_await execute(
      actions, [&](WriteContext& context) { result = write_item(context, action, options); });
  if (!executed) co_return std::unexpected(std::move(executed).error());
  co_return result;
}

store::Async<store::TransactWriteItemsResult> Engine::run(Transaction& transaction) {
  store::Result<store::TransactWriteItemsResult> result;
  std::vector<WriteAction*> actions;
  for (auto& action : transaction.actions) actions.push_back(&action);
  auto executed = co_await execute(
      actions, [&](WriteContext& context) { result = run_transaction(context, transaction); });
  if (!executed) co_return std::unexpected(std::move(executed).error());
  co_return result;
}

void Engine::write_metrics(metrics::Exposition& out) const {
  out.gauge("tabella_tables", "Tables", static_cast<double>(catalogue_.all().size()));
  out.gauge("tabella_streams", "Streams, those that are disabled but can still be read included",
            static_cast<double>(streams_.all().size()));
  out.counter("tabella_ttl_deleted_total", "Items that were deleted because their time had come",
              static_cast<double>(expired_items_.load()));
  out.gauge("tabella_ttl_lag_seconds", "How long the item that is due next to be deleted has been due",
            static_cast<double>(expiry_lag_.load()));
  out.histogram("tabella_stream_lag_seconds", "Age of the last record that a GetRecords returned",
                record_ages_);
  writer_.write_metrics(out);
  scrub_.write_metrics(out);
  reclaim_.write_metrics(out);
  database_.write_metrics(out);
}

// Ids are never used twice, so what a dropped table leaves behind cannot meet a new one.
uint32_t Engine::take_id(WriteContext& context) {
  const uint32_t id = next_id_++;
  context.batch().put(keys::meta("next_id"), encode_number(next_id_));
  return id;
}

}  // namespace tabella::engine

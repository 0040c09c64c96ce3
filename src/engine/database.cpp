#include "engine/database.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "engine/keys.h"

namespace tabella::engine {
namespace {

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

void require(const rocksdb::Status& status) {
  if (!status.ok()) throw DatabaseFailure("storage failed: " + status.ToString());
}

// Ranges are only ever deleted for ids that nothing refers to any more: no read needs to look at those
// deletions.
rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions options;
  options.ignore_range_deletions = true;
  return options;
}

rocksdb::Options make_options() {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.block_cache = rocksdb::NewLRUCache(256u << 20, 4);
  table.block_size = 8 << 10;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;

  rocksdb::Options options;
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(keys::kPartitionPrefix));
  options.write_buffer_size = 32u << 20;
  options.arena_block_size = 256u << 10;  // an idle store stays small
  options.max_write_buffer_number = 4;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression_per_level = {rocksdb::kNoCompression, rocksdb::kNoCompression,
                                   rocksdb::kLZ4Compression};
  // Large items are written to files of their own once, instead of each time that their level is compacted.
  options.enable_blob_files = true;
  options.min_blob_size = 4096;
  options.blob_compression_type = rocksdb::kLZ4Compression;
  options.enable_blob_garbage_collection = true;
  options.max_background_jobs = 2;
  options.bytes_per_sync = 1u << 20;
  options.max_total_wal_size = 256u << 20;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.allow_concurrent_memtable_write = false;  // there is one writer
  options.avoid_unnecessary_blocking_io = true;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

std::string explain(const std::filesystem::path& folder, const rocksdb::Status& status) {
  const auto text = status.ToString();
  if (status.IsIOError() && text.find("lock") != std::string::npos)
    return fmt::format(
        "the data folder {} is in use by another process; stop it or choose another with --data",
        folder.string());
  if (status.IsCorruption()) return fmt::format("the data folder {} is damaged: {}", folder.string(), text);
  return fmt::format("the data folder {} cannot be opened: {}", folder.string(), text);
}

bool is_locked(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY);
  if (descriptor < 0) return false;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool locked = fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(descriptor);
  return locked;
}

}  // namespace

struct Batch::Impl {
  rocksdb::WriteBatch batch;
};

Batch::Batch() : impl_(std::make_unique<Impl>()) {}
Batch::~Batch() = default;
void Batch::put(std::string_view key, std::string_view value) {
  require(impl_->batch.Put(slice(key), slice(value)));
}
void Batch::remove(std::string_view key) { require(impl_->batch.Delete(slice(key))); }
void Batch::remove_range(std::string_view from, std::string_view to) {
  require(impl_->batch.DeleteRange(slice(from), slice(to)));
}
void Batch::clear() { impl_->batch.Clear(); }
bool Batch::empty() const { return impl_->batch.Count() == 0; }
size_t Batch::bytes() const { return impl_->batch.GetDataSize(); }

struct Cursor::Impl {
  Impl(std::string begin, std::string end, Database::Direction d)
      : from(std::move(begin)), to(std::move(end)), direction(d) {}
  std::string from;
  std::string to;
  rocksdb::Slice from_slice;
  rocksdb::Slice to_slice;
  Database::Direction direction;
  std::unique_ptr<rocksdb::Iterator> iterator;
};

Cursor::Cursor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor::~Cursor() = default;

bool Cursor::valid() const {
  if (impl_->iterator->Valid()) return true;
  require(impl_->iterator->status());
  return false;
}

std::string_view Cursor::key() const { return impl_->iterator->key().ToStringView(); }
std::string_view Cursor::value() const { return impl_->iterator->value().ToStringView(); }

void Cursor::next() {
  if (impl_->direction == Database::Direction::forward)
    impl_->iterator->Next();
  else
    impl_->iterator->Prev();
}

struct Database::Impl {
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::WriteOptions write_options;
};

Database::Database(const std::filesystem::path& folder, Durability durability)
    : impl_(std::make_unique<Impl>()) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error(
        fmt::format("the data folder {} cannot be created: {}", folder.string(), error.message()));
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(make_options(), folder.string(), &db);
  if (!status.ok()) throw std::runtime_error(explain(folder, status));
  impl_->db.reset(db);
  impl_->write_options.sync = durability == Durability::sync;
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::unique_ptr<Database> Database::open_to_read(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "CURRENT"))
    throw std::runtime_error(fmt::format("there is no store in {}", folder.string()));
  // RocksDB reads without its lock; what is being written at the same time cannot be judged.
  if (is_locked(folder / "LOCK"))
    throw std::runtime_error(
        fmt::format("the data folder {} is in use by another process; stop it first", folder.string()));
  auto options = make_options();
  options.create_if_missing = false;
  options.avoid_unnecessary_blocking_io = false;  // a store opened so has nobody who could do it later
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(options, folder.string(), &db);
  if (!status.ok()) throw std::runtime_error(explain(folder, status));
  auto impl = std::make_unique<Impl>();
  impl->db.reset(db);
  return std::unique_ptr<Database>(new Database(std::move(impl)));
}

Database::~Database() = default;

std::optional<std::string> Database::get(std::string_view key) const {
  rocksdb::PinnableSlice value;
  const auto status = impl_->db->Get(read_options(), impl_->db->DefaultColumnFamily(), slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  require(status);
  return value.ToString();
}

std::vector<std::optional<std::string>> Database::get_all(const std::vector<std::string>& keys) const {
  rocksdb::ManagedSnapshot snapshot(impl_->db.get());
  auto options = read_options();
  options.snapshot = snapshot.snapshot();
  std::vector<std::optional<std::string>> values;
  for (const auto& key : keys) {
    std::string value;
    const auto status = impl_->db->Get(options, slice(key), &value);
    if (!status.IsNotFound()) require(status);
    values.push_back(status.ok() ? std::optional(std::move(value)) : std::nullopt);
  }
  return values;
}

namespace {

void place(Cursor::Impl& cursor, rocksdb::DB& db, rocksdb::ReadOptions options) {
  cursor.from_slice = cursor.from;
  cursor.to_slice = cursor.to;
  options.iterate_lower_bound = &cursor.from_slice;
  options.iterate_upper_bound = &cursor.to_slice;
  cursor.iterator.reset(db.NewIterator(options));
  if (cursor.direction == Database::Direction::forward)
    cursor.iterator->Seek(cursor.from_slice);
  else
    cursor.iterator->SeekForPrev(cursor.to_slice);
  // The upper bound is exclusive, but SeekForPrev may stand on it.
  if (cursor.iterator->Valid() && cursor.iterator->key() == cursor.to_slice) cursor.iterator->Prev();
}

}  // namespace

Cursor Database::range(std::string from, std::string to, Direction direction, bool within_partition) const {
  auto cursor = std::make_unique<Cursor::Impl>(std::move(from), std::move(to), direction);
  auto options = read_options();
  options.total_order_seek = !within_partition;
  place(*cursor, *impl_->db, options);
  return Cursor(std::move(cursor));
}

Cursor Database::everything(std::string from, std::string to) const {
  auto cursor = std::make_unique<Cursor::Impl>(std::move(from), std::move(to), Direction::forward);
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  place(*cursor, *impl_->db, options);
  return Cursor(std::move(cursor));
}

std::optional<std::string> Database::check_files() const {
  const auto status = impl_->db->VerifyChecksum();
  return status.ok() ? std::nullopt : std::optional(status.ToString());
}

void Database::write(Batch& batch) { require(impl_->db->Write(impl_->write_options, &batch.impl_->batch)); }

uint64_t Database::approximate_size(std::string_view from, std::string_view to) const {
  const rocksdb::Range range(slice(from), slice(to));
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  uint64_t size = 0;
  require(impl_->db->GetApproximateSizes(options, impl_->db->DefaultColumnFamily(), &range, 1, &size));
  return size;
}

void Database::write_metrics(metrics::Exposition& out) const {
  static constexpr std::array<std::array<const char*, 3>, 9> kProperties = {{
      {"rocksdb.cur-size-all-mem-tables", "tabella_rocksdb_memtable_bytes", "Bytes in memtables"},
      {"rocksdb.block-cache-usage", "tabella_rocksdb_block_cache_bytes", "Bytes in the block cache"},
      {"rocksdb.estimate-table-readers-mem", "tabella_rocksdb_table_reader_bytes",
       "Bytes of filters and indexes outside the block cache"},
      {"rocksdb.total-sst-files-size", "tabella_rocksdb_file_bytes", "Bytes in sorted files"},
      {"rocksdb.estimate-num-keys", "tabella_rocksdb_keys", "Keys of all kinds, as estimated"},
      {"rocksdb.num-running-compactions", "tabella_rocksdb_compactions", "Compactions that run"},
      {"rocksdb.estimate-pending-compaction-bytes", "tabella_rocksdb_pending_compaction_bytes",
       "Bytes that wait to be compacted"},
      {"rocksdb.num-running-flushes", "tabella_rocksdb_flushes", "Flushes that run"},
      {"rocksdb.actual-delayed-write-rate", "tabella_rocksdb_delayed_write_rate",
       "Bytes per second to which writes are slowed down; 0: not at all"},
  }};
  for (const auto& [property, name, help] : kProperties) {
    uint64_t value = 0;
    if (impl_->db->GetIntProperty(property, &value)) out.gauge(name, help, static_cast<double>(value));
  }
}

void Database::flush() {
  rocksdb::FlushOptions options;
  options.wait = false;
  require(impl_->db->Flush(options));
}

void Database::close() {
  if (!impl_->db) return;
  require(impl_->db->SyncWAL());
  require(impl_->db->Close());
  impl_->db.reset();
}

}  // namespace tabella::engine

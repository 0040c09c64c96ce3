#include "engine/database.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/write_batch.h>

#include "base/bytes.h"
#include "base/log.h"
#include "engine/faulty_file_system.h"
#include "engine/keys.h"
#include "engine/manifest.h"
#include "engine/rocksdb_options.h"
#include "engine/watermark.h"

namespace tabella::engine {
namespace {

// What is read of the data files when a store is opened; the rest is looked at afterwards (scrub.h).
constexpr uint64_t kCheckedAtStart = 64u << 20;

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

std::string explain_status(const std::filesystem::path& folder, const rocksdb::Status& status) {
  const auto text = status.ToString();
  if (status.IsIOError() && text.find("lock") != std::string::npos)
    return fmt::format(
        "the data folder {} is in use by another process; stop it or choose another with --data",
        folder.string());
  if (status.IsNoSpace())
    return fmt::format("there is no room on the disk of the data folder {}: {}", folder.string(), text);
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
void Batch::mark() { impl_->batch.SetSavePoint(); }
void Batch::undo() { require(impl_->batch.RollbackToSavePoint()); }
void Batch::forget_mark() { require(impl_->batch.PopSavePoint()); }
void Batch::clear() { impl_->batch.Clear(); }
bool Batch::empty() const { return impl_->batch.Count() == 0; }
size_t Batch::bytes() const { return impl_->batch.GetDataSize(); }

namespace {

// Hears of what RocksDB does in the background.
class Listener : public rocksdb::EventListener {
 public:
  explicit Listener(Watermark* watermark) : watermark_(watermark) {}

  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo&) override { note_manifest(db); }
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo&) override {
    note_manifest(db);
  }

  // RocksDB's own way back after a full disk can end in an assertion: we open the store again instead.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* automatic) override {
    *automatic = false;
  }

  // As RocksDB knows it: what of it is whole and on disk.
  void note_manifest(rocksdb::DB* db) {
    if (!watermark_) return;
    const std::lock_guard lock(mutex_);
    std::vector<std::string> files;
    uint64_t size = 0;
    if (!db->GetLiveFiles(files, &size, false).ok()) return;
    for (const auto& file : files)
      if (const auto number = manifest_number(file)) watermark_->note_manifest(*number, size);
  }

 private:
  std::mutex mutex_;
  Watermark* const watermark_;
};

}  // namespace

// RocksDB is used by many threads and can be taken away from them: each counts itself in while it uses it.
struct Database::Impl {
  DatabaseOptions options;
  std::unique_ptr<rocksdb::Env> env;  // with faults
  std::optional<Watermark> watermark;
  std::shared_ptr<Listener> listener;
  std::unique_ptr<rocksdb::DB> owned;
  std::unique_ptr<rocksdb::ColumnFamilyHandle> handle;  // of a store opened for reading
  std::atomic<rocksdb::DB*> db = nullptr;
  mutable std::atomic<int> users = 0;
  rocksdb::WriteOptions write_options;
  bool salvage = false;
  std::atomic<bool> stop_reclaiming = false;
  bool failed = false;  // a write failed; the committer's thread, and whoever opens it again

  rocksdb::Options rocksdb_options() const;
  void open();
  void open_to_read();
  void let_go();
};

namespace {

class Use {
 public:
  explicit Use(const Database::Impl& impl) : impl_(impl) {
    ++impl_.users;
    db_ = impl_.db;
    if (db_) return;
    --impl_.users;
    throw DatabaseFailure("the store is being opened again; try again in a moment");
  }
  ~Use() { --impl_.users; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  rocksdb::DB* operator->() const { return db_; }
  rocksdb::DB& operator*() const { return *db_; }

 private:
  const Database::Impl& impl_;
  rocksdb::DB* db_;
};

}  // namespace

struct Cursor::Impl {
  Impl(const Database::Impl& database, std::string begin, std::string end, Database::Direction d)
      : db(database), from(std::move(begin)), to(std::move(end)), direction(d) {}
  Use db;
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

rocksdb::Options Database::Impl::rocksdb_options() const {
  auto made = make_options();
  made.max_open_files = options.max_open_files;
  if (env) made.env = env.get();
  if (listener) made.listeners.push_back(listener);
  return made;
}

void Database::Impl::open() {
  const auto& folder = options.folder;
  require_not_in_use(folder);
  const auto check = check_folder(folder, kCheckedAtStart);
  if (!check.problems.empty()) throw std::runtime_error(explain(folder, check));
  for (const auto& remark : check.remarks) log::warning("{}", remark);
  // Where a crash of the machine may lose what was acknowledged, there is nothing to hold the store to.
  if (options.durability == Durability::sync && !watermark) watermark.emplace(folder);
  if (!listener) listener = std::make_shared<Listener>(watermark ? &*watermark : nullptr);
  auto made = rocksdb_options();
  made.create_if_missing = check.is_new;
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::Open(made, folder.string(), &opened);
  if (!status.ok()) throw std::runtime_error(explain_status(folder, status));
  owned.reset(opened);
  listener->note_manifest(opened);
  failed = false;
  stop_reclaiming = false;
  db = opened;
  // A store that may lose its last moments with the machine remembers in which of the machine's lives that
  // was.
  if (options.durability == Durability::sync)
    std::filesystem::remove(folder / kRelaxedFile);
  else
    std::ofstream(folder / kRelaxedFile) << boot_id();
}

void Database::Impl::open_to_read() {
  auto made = rocksdb_options();
  made.listeners.clear();
  made.avoid_unnecessary_blocking_io = false;  // a store opened so has nobody who could do it later
  made.max_open_files = -1;
  if (salvage) {
    made.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    made.paranoid_checks = false;
  }
  // With the column family named: without, RocksDB may choose a way of reading that knows no blob files.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(
      made, options.folder.string(), {{rocksdb::kDefaultColumnFamilyName, made}}, &handles, &opened);
  if (!status.ok()) throw std::runtime_error(explain_status(options.folder, status));
  handle.reset(handles.front());
  owned.reset(opened);
  db = opened;
}

// Waits for those who use it.
void Database::Impl::let_go() {
  stop_reclaiming = true;
  db = nullptr;
  while (users > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  handle.reset();
  if (!owned) return;
  const auto status = owned->Close();
  if (!status.ok()) log::warning("the store did not close well: {}", status.ToString());
  owned.reset();
}

Database::Database(DatabaseOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  const auto& folder = impl_->options.folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error(
        fmt::format("the data folder {} cannot be created: {}", folder.string(), error.message()));
  if (impl_->options.faults) impl_->env = make_faulty_env(impl_->options.faults);
  impl_->write_options.sync = impl_->options.durability == Durability::sync;
  impl_->open();
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

bool Database::is_in_use(const std::filesystem::path& folder) { return is_locked(folder / "LOCK"); }

void Database::require_not_in_use(const std::filesystem::path& folder) {
  if (is_in_use(folder))
    throw std::runtime_error(fmt::format(
        "the data folder {} is in use by another process; stop it, or name another folder", folder.string()));
}

std::unique_ptr<Database> Database::open_to_read(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "CURRENT"))
    throw std::runtime_error(fmt::format("there is no store in {}", folder.string()));
  // RocksDB reads without its lock; what is being written at the same time cannot be judged.
  require_not_in_use(folder);
  auto impl = std::make_unique<Impl>();
  impl->options.folder = folder;
  impl->open_to_read();
  return std::unique_ptr<Database>(new Database(std::move(impl)));
}

std::unique_ptr<Database> Database::open_to_salvage(const std::filesystem::path& folder,
                                                    bool manifest_is_sound) {
  auto impl = std::make_unique<Impl>();
  impl->options.folder = folder;
  impl->salvage = true;
  try {
    if (!manifest_is_sound) throw std::runtime_error("its MANIFEST cannot be used");
    impl->open_to_read();
  } catch (const std::exception& error) {
    log::warning("the store is put together from its files: {}", error.what());
    const auto status = rocksdb::RepairDB(folder.string(), make_options());
    if (!status.ok()) throw std::runtime_error(explain_status(folder, status));
    enter_blob_files(folder);
    impl->open_to_read();
  }
  return std::unique_ptr<Database>(new Database(std::move(impl)));
}

Database::~Database() {
  if (impl_) impl_->handle.reset();
}

void Database::reopen() {
  impl_->let_go();
  // What the kernel still has of a log whose sync failed may never have reached the disk.
  for (const auto& entry : std::filesystem::directory_iterator(impl_->options.folder)) {
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  }
  try {
    impl_->open();
  } catch (const std::exception&) {
    try {
      impl_->open_to_read();
    } catch (const std::exception& error) {
      log::error("the store can not even be read: {}", error.what());
    }
    throw;
  }
}

uint64_t Database::free_bytes() const {
  struct statvfs disk = {};
  if (statvfs(impl_->options.folder.c_str(), &disk) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}

uint64_t Database::unwritten_bytes() const {
  uint64_t bytes = 0;
  Use(*impl_)->GetIntProperty("rocksdb.cur-size-all-mem-tables", &bytes);
  return bytes;
}

uint64_t Database::first_log() const {
  uint64_t number = 0;
  Use(*impl_)->GetIntProperty("rocksdb.min-log-number-to-keep", &number);
  return number;
}

uint64_t Database::sequence() const { return Use(*impl_)->GetLatestSequenceNumber(); }

std::vector<DataFile> Database::files() const {
  rocksdb::LiveFilesStorageInfoOptions options;
  options.include_checksum_info = true;
  options.wal_size_for_flush = UINT64_MAX;  // leave the memtables where they are
  std::vector<rocksdb::LiveFileStorageInfo> live;
  require(Use(*impl_)->GetLiveFilesStorageInfo(options, &live));
  std::vector<DataFile> files;
  for (const auto& file : live) {
    if (file.file_type != rocksdb::kTableFile && file.file_type != rocksdb::kBlobFile) continue;
    const bool known = file.file_checksum_func_name == "FileChecksumCrc32c";
    files.push_back({.name = file.relative_filename.substr(file.relative_filename.find_first_not_of('/')),
                     .size = file.size,
                     .checksum = known ? file.file_checksum : std::string()});
  }
  return files;
}

std::optional<std::string> Database::get(std::string_view key) const {
  const Use db(*impl_);
  rocksdb::PinnableSlice value;
  const auto status = db->Get(read_options(), db->DefaultColumnFamily(), slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  require(status);
  return value.ToString();
}

std::vector<std::optional<std::string>> Database::get_all(const std::vector<std::string>& keys) const {
  const Use db(*impl_);
  rocksdb::ManagedSnapshot snapshot(&*db);
  auto options = read_options();
  options.snapshot = snapshot.snapshot();
  std::vector<std::optional<std::string>> values;
  for (const auto& key : keys) {
    std::string value;
    const auto status = db->Get(options, slice(key), &value);
    if (!status.IsNotFound()) require(status);
    values.push_back(status.ok() ? std::optional(std::move(value)) : std::nullopt);
  }
  return values;
}

namespace {

void place(Cursor::Impl& cursor, rocksdb::ReadOptions options) {
  cursor.from_slice = cursor.from;
  cursor.to_slice = cursor.to;
  options.iterate_lower_bound = &cursor.from_slice;
  options.iterate_upper_bound = &cursor.to_slice;
  cursor.iterator.reset(cursor.db->NewIterator(options));
  if (cursor.direction == Database::Direction::forward)
    cursor.iterator->Seek(cursor.from_slice);
  else
    cursor.iterator->SeekForPrev(cursor.to_slice);
  // The upper bound is exclusive, but SeekForPrev may stand on it.
  if (cursor.iterator->Valid() && cursor.iterator->key() == cursor.to_slice) cursor.iterator->Prev();
}

}  // namespace

Cursor Database::range(std::string from, std::string to, Direction direction, bool within_partition) const {
  auto cursor = std::make_unique<Cursor::Impl>(*impl_, std::move(from), std::move(to), direction);
  auto options = read_options();
  options.total_order_seek = !within_partition;
  place(*cursor, options);
  return Cursor(std::move(cursor));
}

Cursor Database::everything(std::string from, std::string to) const {
  auto cursor = std::make_unique<Cursor::Impl>(*impl_, std::move(from), std::move(to), Direction::forward);
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  place(*cursor, options);
  return Cursor(std::move(cursor));
}

void Database::write(Batch& batch) {
  if (impl_->failed) throw DatabaseFailure("storage failed: a write before this one did");
  const Use db(*impl_);
  const auto status = db->Write(impl_->write_options, &batch.impl_->batch);
  impl_->failed = !status.ok();
  require(status);
  if (impl_->watermark) impl_->watermark->acknowledge(db->GetLatestSequenceNumber());
}

uint64_t Database::approximate_size(std::string_view from, std::string_view to) const {
  const rocksdb::Range range(slice(from), slice(to));
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  uint64_t size = 0;
  const Use db(*impl_);
  require(db->GetApproximateSizes(options, db->DefaultColumnFamily(), &range, 1, &size));
  return size;
}

void Database::write_metrics(metrics::Exposition& out) const {
  static constexpr std::array<std::array<const char*, 3>, 11> kProperties = {{
      {"rocksdb.cur-size-all-mem-tables", "tabella_rocksdb_memtable_bytes", "Bytes in memtables"},
      {"rocksdb.block-cache-usage", "tabella_rocksdb_block_cache_bytes", "Bytes in the block cache"},
      {"rocksdb.estimate-table-readers-mem", "tabella_rocksdb_table_reader_bytes",
       "Bytes of filters and indexes outside the block cache"},
      {"rocksdb.total-sst-files-size", "tabella_rocksdb_file_bytes", "Bytes in sorted files"},
      {"rocksdb.live-blob-file-size", "tabella_rocksdb_blob_file_bytes", "Bytes in blob files"},
      {"rocksdb.live-blob-file-garbage-size", "tabella_rocksdb_blob_garbage_bytes",
       "Bytes in blob files that nothing refers to any more"},
      {"rocksdb.estimate-num-keys", "tabella_rocksdb_keys", "Keys of all kinds, as estimated"},
      {"rocksdb.num-running-compactions", "tabella_rocksdb_compactions", "Compactions that run"},
      {"rocksdb.estimate-pending-compaction-bytes", "tabella_rocksdb_pending_compaction_bytes",
       "Bytes that wait to be compacted"},
      {"rocksdb.num-running-flushes", "tabella_rocksdb_flushes", "Flushes that run"},
      {"rocksdb.actual-delayed-write-rate", "tabella_rocksdb_delayed_write_rate",
       "Bytes per second to which writes are slowed down; 0: not at all"},
  }};
  if (!impl_->db) return;  // it is being opened again
  const Use db(*impl_);
  for (const auto& [property, name, help] : kProperties) {
    uint64_t value = 0;
    if (db->GetIntProperty(property, &value)) out.gauge(name, help, static_cast<double>(value));
  }
}

void Database::flush() {
  rocksdb::FlushOptions options;
  options.wait = false;
  require(Use(*impl_)->Flush(options));
}

void Database::stop_reclaiming() { impl_->stop_reclaiming = true; }

void Database::reclaim(std::string_view from, std::string_view to) {
  const Use db(*impl_);
  require(db->Flush(rocksdb::FlushOptions()));  // deletions that are in memory only reclaim nothing
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.max_subcompactions = 1;
  options.canceled = &impl_->stop_reclaiming;
  const auto begin = slice(from);
  const auto end = slice(to);
  const auto status = db->CompactRange(options, &begin, &end);
  if (!status.IsIncomplete()) require(status);
}

void Database::close() {
  if (!impl_->owned) return;
  // After a failure there is nothing to sync that could be trusted, and RocksDB would end in an assertion.
  const bool sync = !impl_->failed && impl_->db != nullptr && !impl_->handle;
  const auto status = sync ? impl_->owned->SyncWAL() : rocksdb::Status::OK();
  impl_->let_go();
  require(status);
}

}  // namespace tabella::engine

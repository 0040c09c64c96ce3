// RocksDB, behind a door of our own: ordered bytes with atomic batches. The only part of the engine that sees
// RocksDB's headers is database.cpp.
//
// Thread-safe for reads; batches are written by the committer's thread only, once the store is open. A disk
// that fails throws DatabaseFailure: there is nothing sensible a request could do about it. After a write
// that failed nothing is written any more until reopen(): what RocksDB has in memory is not to be trusted
// then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "engine/file_faults.h"
#include "engine/folder_check.h"

namespace tabella::engine {

class DatabaseFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Durability { sync, relaxed };

struct DatabaseOptions {
  std::filesystem::path folder;
  Durability durability = Durability::sync;
  int max_open_files = -1;  // -1: as many as there are
  FileFaults faults;        // for tests
};

// Everything in a batch becomes visible, and survives a crash, together.
class Batch {
 public:
  Batch();
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void put(std::string_view key, std::string_view value);
  void remove(std::string_view key);
  void remove_range(std::string_view from, std::string_view to);  // `to` is not removed
  void clear();
  // undo() takes back what came after the last mark(), and the mark.
  void mark();
  void undo();
  void forget_mark();
  bool empty() const;
  size_t bytes() const;

 private:
  friend class Database;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Walks the keys of [from, to) as they were when it was made.
class Cursor {
 public:
  ~Cursor();
  Cursor(Cursor&&) noexcept;
  bool valid() const;
  std::string_view key() const;
  std::string_view value() const;
  void next();  // in the direction it was made for

  struct Impl;  // database.cpp's

 private:
  friend class Database;
  explicit Cursor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Database {
 public:
  // Opens or creates the store, once check_folder() has found nothing wrong. Throws std::runtime_error with a
  // sentence for the user.
  explicit Database(DatabaseOptions options);
  // Whether another process has the folder open. Not to be asked by the one that has.
  static bool is_in_use(const std::filesystem::path& folder);
  // Throws std::runtime_error with a sentence for the user if a process has the store open.
  static void require_not_in_use(const std::filesystem::path& folder);
  // For reading only, a store that no process has open. Throws likewise.
  static std::unique_ptr<Database> open_to_read(const std::filesystem::path& folder);
  // Likewise, passing over what is damaged in the logs; `folder` is a copy that may be changed. Where the
  // MANIFEST cannot be used, one is made from the files that are there.
  static std::unique_ptr<Database> open_to_salvage(const std::filesystem::path& folder,
                                                   bool manifest_is_sound);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::optional<std::string> get(std::string_view key) const;

  // All of them as they were at one moment.
  std::vector<std::optional<std::string>> get_all(const std::vector<std::string>& keys) const;

  enum class Direction { forward, backward };
  // Where the keys share a prefix of keys.h (one partition), `within_partition` lets filters skip whole
  // files.
  Cursor range(std::string from, std::string to, Direction direction, bool within_partition) const;

  // Every key of [from, to), without those that were deleted as a range.
  Cursor everything(std::string from, std::string to) const;
  // The sequence number of the last change.
  uint64_t sequence() const;
  // The number of the first log that holds anything that is not in its files.
  uint64_t first_log() const;
  // Its sorted files and blob files.
  std::vector<DataFile> files() const;

  void write(Batch& batch);
  uint64_t approximate_size(std::string_view from, std::string_view to) const;

  // RocksDB's own figures.
  void write_metrics(metrics::Exposition& out) const;

  // Moves what was written of late into sorted files, in the background: reads there cost less, and opening
  // the store has less to replay.
  void flush();

  // Gives the room of what was deleted in [from, to) back, by rewriting what is left there. Takes as long as
  // that is large; stop_reclaiming() ends it early, and for good.
  void reclaim(std::string_view from, std::string_view to);
  void stop_reclaiming();

  // After a write that failed: closes the store, and opens it again as it is on disk. Reads fail meanwhile,
  // and cursors must come to an end. Throws as the constructor does; then the store can be read as before,
  // and this can be tried again.
  void reopen();

  // Bytes on its disk that are free, and those that what is still in memory will need.
  uint64_t free_bytes() const;
  uint64_t unwritten_bytes() const;

  // Makes everything written durable, whatever the durability, and waits for background work.
  void close();

  struct Impl;  // database.cpp's

 private:
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::engine

// RocksDB, behind a door of our own: ordered bytes with atomic batches. The only part of the engine that sees
// RocksDB's headers is database.cpp.
//
// Thread-safe for reads; batches are written by the committer's thread only, once the store is open. A disk
// that fails throws DatabaseFailure: there is nothing sensible a request could do about it.
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

namespace tabella::engine {

class DatabaseFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Durability { sync, relaxed };

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
  // Throws std::runtime_error with a sentence for the user if the folder cannot be opened.
  Database(const std::filesystem::path& folder, Durability durability);
  // For reading only, a store that no process has open. Throws likewise.
  static std::unique_ptr<Database> open_to_read(const std::filesystem::path& folder);
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
  // What is wrong with the files' checksums, if anything is.
  std::optional<std::string> check_files() const;

  void write(Batch& batch);
  uint64_t approximate_size(std::string_view from, std::string_view to) const;

  // RocksDB's own figures.
  void write_metrics(metrics::Exposition& out) const;

  // Moves what was written of late into sorted files, in the background: reads there cost less, and opening
  // the store has less to replay.
  void flush();

  // Makes everything written durable, whatever the durability, and waits for background work.
  void close();

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::engine

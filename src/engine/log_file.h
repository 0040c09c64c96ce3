// RocksDB's log files (the WALs and the MANIFEST), read without RocksDB: every record's checksum, and the
// sequence numbers of a WAL. RocksDB's own recovery passes over damage in ways that lose what was
// acknowledged; so a folder is looked at with this before it is opened.
//
// The format: blocks of 32 KB; in them records of crc32c (masked, 4 bytes), length (2), type (1) and payload,
// little-endian. A record that does not fit into its block goes on in the next (first, middle, last). The end
// of a block that has no room for a head is zeros.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tabella::engine {

struct LogScan {
  uint64_t size = 0;     // of the file
  uint64_t whole = 0;    // how far its records are whole
  bool damaged = false;  // there are whole records beyond
  bool ends_well() const { return whole == size; }
};

// Gives every whole record to `each`, up to the first that is not. Throws std::runtime_error if the file
// cannot be read.
LogScan scan_log(const std::filesystem::path& file, const std::function<void(std::string_view record)>& each);

// Appends a record as it stands in a log; `log` is the log from its beginning.
void append_log_record(std::string& log, std::string_view record);

// What a record of a WAL says of itself: it holds the sequence numbers from `first` on.
struct WalRecord {
  uint64_t first = 0;
  uint32_t count = 0;
};
std::optional<WalRecord> wal_record(std::string_view record);

}  // namespace tabella::engine

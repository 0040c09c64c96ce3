// Looks at a data folder before anything in it is opened for writing: whether it is a store, whether
// everything that was acknowledged is still there, and whether its files are whole. Changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tabella::engine {

struct FolderCheck {
  bool is_new = false;                // there is no store yet
  bool manifest_is_sound = true;      // what belongs to the store is known
  std::vector<std::string> problems;  // each a sentence; none: it can be opened
  std::vector<std::string> remarks;   // what was found and does no harm
};

// Reads the logs whole, and up to `most_bytes` of the other files, by their checksums.
FolderCheck check_folder(const std::filesystem::path& folder, uint64_t most_bytes);

// One sentence of all problems, with what to do.
std::string explain(const std::filesystem::path& folder, const FolderCheck& check);

// Where a store that was opened with relaxed durability says so, and in which life of the machine (its boot
// id).
inline constexpr const char* kRelaxedFile = "RELAXED";
std::string boot_id();

// One of a store's data files, and how it was when it was written.
struct DataFile {
  std::string name;
  uint64_t size = 0;
  std::string checksum;  // crc32c, big-endian; empty: written by a version that kept none
};

// What is wrong with the file; empty: nothing.
std::string check_file(const std::filesystem::path& folder, const DataFile& file, bool content);

}  // namespace tabella::engine

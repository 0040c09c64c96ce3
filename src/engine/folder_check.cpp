#include "engine/folder_check.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "engine/database.h"
#include "engine/keys.h"
#include "engine/log_file.h"
#include "engine/manifest.h"
#include "engine/watermark.h"

namespace tabella::engine {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The files of a folder by what RocksDB calls them.
struct Files {
  bool current = false;
  bool data = false;                  // sorted or blob files
  std::map<uint64_t, fs::path> logs;  // by number
  std::map<uint64_t, fs::path> manifests;
};

Files files_in(const fs::path& folder) {
  Files files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    const auto extension = entry.path().extension();
    if (name == "CURRENT") files.current = true;
    if (extension == ".sst" || extension == ".blob") files.data = true;
    if (extension == ".log")
      if (const auto number = number_in(entry.path().stem().string())) files.logs[*number] = entry.path();
    if (const auto number = manifest_number(name)) files.manifests[*number] = entry.path();
  }
  return files;
}

// Whether the machine may have lost what the store had not made durable.
bool may_have_lost_moments(const fs::path& folder) {
  std::ifstream in(folder / kRelaxedFile);
  std::string life;
  return std::getline(in, life) && life != boot_id();
}

class Check {
 public:
  Check(const fs::path& folder, uint64_t most_bytes)
      : folder_(folder), most_bytes_(most_bytes), files_(files_in(folder)), known_(Watermark::read(folder)) {}

  FolderCheck run() {
    if (!files_.current) {
      const bool held_something = files_.data || !files_.logs.empty() || (known_ && known_->sequence > 0);
      if (held_something)
        manifest_problem("there are data files, but no file CURRENT that says what belongs to the store");
      else
        check_.is_new = true;
      return std::move(check_);
    }
    check_manifest();
    if (check_.problems.empty()) check_store();
    return std::move(check_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    check_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // With relaxed durability a crash of the machine does that, and what comes before is taken.
  void log_problem(std::string what) {
    (may_have_lost_moments(folder_) ? check_.remarks : check_.problems).push_back(std::move(what));
  }

  void manifest_problem(std::string what) {
    check_.manifest_is_sound = false;
    check_.problems.push_back(std::move(what));
  }

  void check_manifest() {
    const auto number = current_manifest(folder_);
    if (!number) return manifest_problem("CURRENT does not name a MANIFEST");
    const auto name = fmt::format("MANIFEST-{:06}", *number);
    const auto at = files_.manifests.find(*number);
    if (at == files_.manifests.end()) return manifest_problem(name + ", which CURRENT names, is missing");
    const auto scan = scan_log(at->second, [](std::string_view) {});
    if (scan.damaged) return manifest_problem(fmt::format("{} is damaged at byte {}", name, scan.whole));
    if (scan.whole == 0) return manifest_problem(name + " is empty or damaged at its beginning");
    if (!known_) return;
    if (*number < known_->manifest)
      return manifest_problem(
          fmt::format("CURRENT names {}, but MANIFEST-{:06} was in use", name, known_->manifest));
    if (*number == known_->manifest && scan.whole < known_->manifest_size)
      manifest_problem(fmt::format("{} ends at byte {}, and had {}: its end is missing or damaged", name,
                                   scan.whole, known_->manifest_size));
  }

  // Sequence numbers follow each other through all logs that count. What is not whole may only be at an end,
  // and nothing that was acknowledged may be in it (check_sequence).
  void check_logs(uint64_t first) {
    std::optional<uint64_t> next;
    std::string last_name;
    for (auto at = files_.logs.lower_bound(first); at != files_.logs.end(); ++at) {
      const auto& path = at->second;
      const auto name = path.filename().string();
      bool follows = true;
      const auto scan = scan_log(path, [&](std::string_view record) {
        const auto batch = wal_record(record);
        if (!batch || batch->count == 0) return;
        if (next && batch->first != *next && follows) {
          follows = false;
          log_problem(fmt::format("writes are missing between {} and {}", last_name, name));
        }
        next = batch->first + batch->count;
        last_name = name;
      });
      if (scan.damaged)
        log_problem(
            fmt::format("{} is damaged at byte {}, and there are writes after that", name, scan.whole));
      else if (!scan.ends_well())
        torn_.push_back({name, scan.whole, scan.size});
    }
  }

  // Through RocksDB, for reading only.
  void check_store() {
    try {
      const auto database = Database::open_to_read(folder_);
      check_logs(database->first_log());
      check_files(*database);
      check_sequence(*database);
      check_format(*database);
    } catch (const std::exception& error) {
      if (check_.problems.empty()) problem("a file is damaged or cannot be read: {}", error.what());
    }
  }

  void check_sequence(const Database& database) {
    const auto has = database.sequence();
    const auto lost = known_ && known_->sequence > has ? known_->sequence - has : 0;
    for (const auto& [name, whole, size] : torn_) {
      if (lost > 0)
        problem("{} ends in the middle of a record at byte {}", name, whole);
      else
        check_.remarks.push_back(
            fmt::format("{} ends in the middle of a write that was not acknowledged; its last {} bytes are "
                        "left out",
                        name, size - whole));
    }
    if (lost > 0) problem("the last {} changes that were acknowledged are missing", lost);
  }

  void check_format(const Database& database) {
    if (database.get(keys::meta("format"))) return;
    if (database.everything({}, std::string(1, '\xff')).valid())
      problem(
          "there is data without a format number: it is no store of this program, or part of it is missing");
  }

  void check_files(const Database& database) {
    uint64_t read = 0;
    for (const auto& file : database.files()) {
      const bool content = read + file.size <= most_bytes_;
      if (content) read += file.size;
      if (const auto wrong = check_file(folder_, file, content); !wrong.empty()) problem("{}", wrong);
    }
  }

  struct Torn {
    std::string name;
    uint64_t whole;
    uint64_t size;
  };

  const fs::path& folder_;
  const uint64_t most_bytes_;
  const Files files_;
  const std::optional<Watermark::Values> known_;
  std::vector<Torn> torn_;
  FolderCheck check_;
};

}  // namespace

std::string boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

FolderCheck check_folder(const fs::path& folder, uint64_t most_bytes) {
  try {
    return Check(folder, most_bytes).run();
  } catch (const std::exception& error) {
    return {.problems = {error.what()}};
  }
}

std::string explain(const fs::path& folder, const FolderCheck& check) {
  std::string all;
  for (const auto& problem : check.problems) all.append(all.empty() ? "" : "; ").append(problem);
  return fmt::format(
      "the data folder {0} is damaged: {1}. Nothing was changed. Put back a copy, or let `tabella salvage "
      "{0} "
      "NEW` copy what can be read into a new folder",
      folder.string(), all);
}

std::string check_file(const fs::path& folder, const DataFile& file, bool content) {
  const auto path = folder / file.name;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return fmt::format("{} is missing", file.name);
  if (size != file.size) return fmt::format("{} has {} bytes instead of {}", file.name, size, file.size);
  if (!content || file.checksum.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  std::vector<char> buffer(1u << 20);
  uint32_t checksum = 0;
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
    checksum = crc32c({buffer.data(), static_cast<size_t>(in.gcount())}, checksum);
  if (in.bad()) return fmt::format("{} cannot be read", file.name);
  std::string computed;
  put_u32(computed, checksum);
  return computed == file.checksum ? "" : fmt::format("{} is damaged: its checksum is wrong", file.name);
}

}  // namespace tabella::engine

#include "engine/manifest.h"

#include <charconv>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "engine/log_file.h"

namespace tabella::engine {

std::optional<uint64_t> manifest_number(std::string_view name) {
  constexpr std::string_view kManifest = "MANIFEST-";
  const auto at = name.find(kManifest);
  if (at == std::string_view::npos) return std::nullopt;
  const auto digits = name.substr(at + kManifest.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> current_manifest(const std::filesystem::path& folder) {
  std::ifstream in(folder / "CURRENT");
  std::string name;
  std::getline(in, name);
  return manifest_number(name);
}

void enter_blob_files(const std::filesystem::path& folder) {
  constexpr uint32_t kBlobFileAddition = 400;
  constexpr uint64_t kHeadAndFooter = 62;
  std::string edit;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".blob" || entry.file_size() <= kHeadAndFooter) continue;
    put_varint(edit, kBlobFileAddition);
    put_varint(edit, std::strtoull(entry.path().stem().c_str(), nullptr, 10));
    put_varint(edit, 1);  // how many there are in it: not known, and nothing depends on it
    put_varint(edit, entry.file_size() - kHeadAndFooter);
    edit.append(3, '\0');  // no checksum, and no more facts
  }
  const auto number = current_manifest(folder);
  if (edit.empty() || !number) return;
  std::string log;
  append_log_record(log, edit);
  scan_log(folder / fmt::format("MANIFEST-{:06}", *number),
           [&](std::string_view record) { append_log_record(log, record); });
  const auto name = fmt::format("MANIFEST-{:06}", *number + 1);
  std::ofstream(folder / name, std::ios::binary) << log;
  std::ofstream(folder / "CURRENT", std::ios::binary) << name << "\n";
}

}  // namespace tabella::engine

// RocksDB's MANIFEST, as far as its name and its blob files go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tabella::engine {

// Of a name that ends like MANIFEST-000012.
std::optional<uint64_t> manifest_number(std::string_view name);
// Of the one in use, which the file CURRENT names.
std::optional<uint64_t> current_manifest(const std::filesystem::path& folder);

// RocksDB's own repair forgets the blob files: enters those of the folder into the MANIFEST, before what is
// there.
void enter_blob_files(const std::filesystem::path& folder);

}  // namespace tabella::engine

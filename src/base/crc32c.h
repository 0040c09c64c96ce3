// CRC-32C (Castagnoli), the checksum of RocksDB's files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tabella {

// Goes on from the checksum of what came before; 0: nothing did.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace tabella

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tabella {

enum class Compression { gzip, deflate };  // deflate: zlib's format, as in HTTP

std::string compress(std::string_view bytes, Compression format);

enum class DecompressError { malformed, too_large };

struct Decompressed {
  std::string bytes;
  std::optional<DecompressError> error;
};

// Stops with too_large as soon as the output would pass `limit`, so a small body cannot claim much memory.
// gzip may have several members.
Decompressed decompress(std::string_view packed, Compression format, size_t limit);

}  // namespace tabella

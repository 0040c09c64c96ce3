#include "base/gzip.h"

#include <array>

#include <zlib.h>

namespace tabella {
namespace {

int window_of(Compression format) { return format == Compression::gzip ? 15 + 16 : 15; }

Bytef* input(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }

}  // namespace

std::string compress(std::string_view bytes, Compression format) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_of(format), 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Decompressed decompress(std::string_view packed, Compression format, size_t limit) {
  Decompressed result;
  z_stream stream{};
  inflateInit2(&stream, window_of(format));
  stream.next_in = input(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  std::array<char, 64 * 1024> chunk{};
  while (!result.error) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = chunk.size();
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) result.error = DecompressError::malformed;
    const size_t produced = chunk.size() - stream.avail_out;
    if (result.bytes.size() + produced > limit) result.error = DecompressError::too_large;
    if (result.error) break;
    result.bytes.append(chunk.data(), produced);
    if (status != Z_STREAM_END) continue;
    if (stream.avail_in == 0) break;
    if (format == Compression::deflate) result.error = DecompressError::malformed;
    inflateReset(&stream);  // another member follows
  }
  inflateEnd(&stream);
  return result;
}

}  // namespace tabella

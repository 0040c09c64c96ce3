#include "search/manifest.h"

#include "base/bytes.h"
#include "base/gzip.h"

namespace tabella::search {
namespace {

void put_segment(std::string& out, const SegmentInfo& segment) {
  put_sized(out, segment.id);
  put_sized(out, segment.first);
  put_sized(out, segment.last);
  put_varint(out, segment.count);
  put_varint(out, static_cast<uint64_t>(segment.first_expiry));
  put_varint(out, static_cast<uint64_t>(segment.last_expiry));
  put_varint(out, segment.term_blocks);
  put_varint(out, segment.entry_blocks);
}

SegmentInfo take_segment(std::string_view& in) {
  SegmentInfo segment;
  segment.id = take_sized(in);
  segment.first = take_sized(in);
  segment.last = take_sized(in);
  segment.count = take_varint(in);
  segment.first_expiry = static_cast<int64_t>(take_varint(in));
  segment.last_expiry = static_cast<int64_t>(take_varint(in));
  segment.term_blocks = take_varint(in);
  segment.entry_blocks = take_varint(in);
  return segment;
}

}  // namespace

// Packed: ids have much in common, and the manifest is to fit into one item.
std::string encode(const Manifest& manifest) {
  std::string out;
  put_sized(out, manifest.indexed_to);
  put_varint(out, manifest.traits);
  put_varint(out, static_cast<uint64_t>(manifest.settle));
  put_varint(out, manifest.segments.size());
  for (const auto& segment : manifest.segments) put_segment(out, segment);
  put_varint(out, manifest.condemned.size());
  for (const auto& condemned : manifest.condemned) {
    put_segment(out, condemned.segment);
    put_varint(out, static_cast<uint64_t>(condemned.since));
    put_varint(out, condemned.documents ? 1 : 0);
  }
  return compress(out, Compression::deflate);
}

Manifest decode_manifest(int64_t version, std::string_view packed) {
  constexpr size_t kLargest = 64u << 20;
  const auto unpacked = decompress(packed, Compression::deflate, kLargest);
  std::string_view bytes = unpacked.bytes;
  Manifest manifest{.version = version};
  manifest.indexed_to = take_sized(bytes);
  manifest.traits = take_varint(bytes);
  manifest.settle = static_cast<int64_t>(take_varint(bytes));
  for (auto left = take_varint(bytes); left > 0 && !bytes.empty(); --left)
    manifest.segments.push_back(take_segment(bytes));
  for (auto left = take_varint(bytes); left > 0 && !bytes.empty(); --left) {
    Condemned condemned;
    condemned.segment = take_segment(bytes);
    condemned.since = static_cast<int64_t>(take_varint(bytes));
    condemned.documents = take_varint(bytes) != 0;
    manifest.condemned.push_back(std::move(condemned));
  }
  return manifest;
}

}  // namespace tabella::search

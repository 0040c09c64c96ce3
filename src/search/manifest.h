// Which segments the index is made of, at one moment: one item, replaced as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::search {

struct SegmentInfo {
  std::string id;
  std::string first, last;  // ids of its documents
  size_t count = 0;
  int64_t first_expiry = 0, last_expiry = 0;
  size_t term_blocks = 0, entry_blocks = 0;
};

// A segment that is no longer part of the index, and whose rows go when nobody can be reading them any more.
struct Condemned {
  SegmentInfo segment;
  int64_t since = 0;       // seconds since 1970
  bool documents = false;  // what it was made of goes, too
};

struct Manifest {
  int64_t version = 0;     // 0: there is none yet
  std::string indexed_to;  // all documents up to this id are in segments
  uint64_t traits = 0;     // the owner's: bits that those who add to it have set
  int64_t settle = 0;      // milliseconds that the index stays behind, for the slowest of those who add to it
  std::vector<SegmentInfo> segments;  // oldest first; their ids do not overlap
  std::vector<Condemned> condemned;
};

std::string encode(const Manifest& manifest);
Manifest decode_manifest(int64_t version, std::string_view bytes);

}  // namespace tabella::search

// How far the store had come, written beside it: the last sequence number that was acknowledged, and how long
// the MANIFEST was. Without it, a log whose end was cut off looks like one that ended there.
//
// It is written after what it speaks of is durable, and itself never synced: after a kill it is exact, after
// a power cut it may be behind, and it is never ahead. So a store that has less than it says has lost
// something.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tabella::engine {

class Watermark {
 public:
  struct Values {
    uint64_t sequence = 0;  // the last one acknowledged
    uint64_t manifest = 0;  // the number of the MANIFEST in use
    uint64_t manifest_size = 0;
  };

  // What the folder's file says; nothing if there is none, or none that can be read.
  static std::optional<Values> read(const std::filesystem::path& folder);

  // Opens the folder's file, or makes it. Throws std::runtime_error with a sentence for the user.
  explicit Watermark(const std::filesystem::path& folder);
  ~Watermark();
  Watermark(const Watermark&) = delete;
  Watermark& operator=(const Watermark&) = delete;

  void acknowledge(uint64_t sequence);                   // by one thread
  void note_manifest(uint64_t manifest, uint64_t size);  // by one thread at a time

 private:
  struct File;
  File* file_ = nullptr;  // shared memory
};

}  // namespace tabella::engine

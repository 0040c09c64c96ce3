#include "engine/watermark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

namespace tabella::engine {
namespace {

constexpr const char* kName = "WATERMARK";

// A value and its complement, so that half of a write is seen to be that. On disk: do not change.
struct Slot {
  std::atomic<uint64_t> value;
  std::atomic<uint64_t> complement;

  void put(uint64_t v) {
    value.store(v, std::memory_order_release);
    complement.store(~v, std::memory_order_release);
  }
  std::optional<uint64_t> get() const {
    const auto v = value.load();
    return complement.load() == ~v ? std::optional(v) : std::nullopt;
  }
};

// Written in turn: one of them is whole at any moment.
struct Pair {
  std::array<Slot, 2> slots;

  void put(uint64_t v, size_t turn) { slots[turn % 2].put(v); }
  std::optional<uint64_t> get() const {
    const auto a = slots[0].get();
    const auto b = slots[1].get();
    return a && b ? std::optional(std::max(*a, *b)) : a ? a : b;
  }
};

}  // namespace

// On disk: do not change.
struct Watermark::File {
  Pair sequence;
  Pair manifest;  // number · size, in 24 and 40 bits
  std::atomic<uint64_t> turns;
};

std::optional<Watermark::Values> Watermark::read(const std::filesystem::path& folder) {
  std::ifstream in(folder / kName, std::ios::binary);
  std::array<char, sizeof(File)> bytes{};
  if (!in.read(bytes.data(), bytes.size())) return std::nullopt;
  File file;
  std::memcpy(static_cast<void*>(&file), bytes.data(), bytes.size());
  const auto sequence = file.sequence.get();
  const auto manifest = file.manifest.get();
  if (!sequence || !manifest) return std::nullopt;
  return Values{.sequence = *sequence,
                .manifest = *manifest >> 40,
                .manifest_size = *manifest & ((uint64_t{1} << 40) - 1)};
}

Watermark::Watermark(const std::filesystem::path& folder) {
  const auto path = folder / kName;
  const auto fail = [&](const char* what) {
    throw std::runtime_error(fmt::format("{} cannot be {}: {}", path.string(), what, std::strerror(errno)));
  };
  const auto known = read(folder);
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("opened");
  // With its room on disk, so that writing to it cannot fail later.
  const int error = posix_fallocate(descriptor, 0, sizeof(File));
  void* memory = error == 0 ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                            : MAP_FAILED;
  if (error != 0) errno = error;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  if (memory == MAP_FAILED) fail("written");
  file_ = static_cast<File*>(memory);
  if (known) return;
  for (size_t turn : {0, 1}) {
    file_->sequence.put(0, turn);
    file_->manifest.put(0, turn);
  }
}

Watermark::~Watermark() {
  if (file_) munmap(file_, sizeof(File));
}

void Watermark::acknowledge(uint64_t sequence) { file_->sequence.put(sequence, file_->turns++); }

void Watermark::note_manifest(uint64_t manifest, uint64_t size) {
  const auto value = manifest << 40 | size;
  for (size_t turn : {0, 1}) file_->manifest.put(value, turn);
}

}  // namespace tabella::engine

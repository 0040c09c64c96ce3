#include "base/ids.h"

#include <cstdint>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace tabella {
namespace {

uint64_t next_random() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }()};
  return generator();
}

}  // namespace

std::string make_request_id() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr size_t kLength = 52;
  constexpr size_t kPerDraw = 11;  // 36^11 < 2^64
  std::string id(kLength, '\0');
  uint64_t bits = 0;
  for (size_t i = 0; i < kLength; ++i) {
    if (i % kPerDraw == 0) bits = next_random();
    id[i] = kAlphabet[bits % kAlphabet.size()];
    bits /= kAlphabet.size();
  }
  return id;
}

std::string make_uuid() {
  const uint64_t high = next_random();
  const uint64_t low = next_random();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, high & 0xfff,
                     (low >> 48 & 0x3fff) | 0x8000, low & 0xffff'ffff'ffff);
}

}  // namespace tabella

#include "base/ids.h"

#include <random>
#include <string_view>

#include <fmt/format.h>

#include "base/checksum.h"

namespace tabella {

uint64_t random_bits() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }()};
  return generator();
}

std::string make_request_id() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr size_t kLength = 52;
  constexpr size_t kPerDraw = 11;  // 36^11 < 2^64
  std::string id(kLength, '\0');
  uint64_t bits = 0;
  for (size_t i = 0; i < kLength; ++i) {
    if (i % kPerDraw == 0) bits = random_bits();
    id[i] = kAlphabet[bits % kAlphabet.size()];
    bits /= kAlphabet.size();
  }
  return id;
}

std::string make_uuid() {
  const uint64_t high = random_bits();
  const uint64_t low = random_bits();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, high & 0xfff,
                     (low >> 48 & 0x3fff) | 0x8000, low & 0xffff'ffff'ffff);
}

std::string uuid_from(std::string_view text) {
  const auto hex = to_hex(sha256(text));
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                     hex.substr(17, 3), hex.substr(20, 12));
}

}  // namespace tabella

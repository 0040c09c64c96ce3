// Prints names that all have the same hash by std::hash as libstdc++ has it (Murmur2, no secret): any first
// half has a second half that leads to the same state; those that are plain letters are kept.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

namespace {

constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
constexpr uint64_t kSeed = 0xc70f6907;
constexpr int kShift = 47;

constexpr uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

uint64_t mixed(uint64_t block) {
  block *= kMultiplier;
  block ^= block >> kShift;
  return block * kMultiplier;
}

uint64_t unmixed(uint64_t block) {
  constexpr uint64_t kInverse = inverse(kMultiplier);
  block *= kInverse;
  block ^= block >> kShift;
  return block * kInverse;
}

bool is_plain(uint64_t block) {
  for (int i = 0; i < 8; ++i, block >>= 8) {
    const auto c = static_cast<unsigned char>(block);
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\') return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const long wanted = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  const uint64_t start = kSeed ^ 16 * kMultiplier;
  uint64_t target = 0;
  size_t hash = 0;
  char name[17] = {};
  for (long found = 0, n = 0; found < wanted; ++n) {
    uint64_t first = 0;
    for (long rest = n, i = 0; i < 8; ++i, rest /= 26)
      first |= static_cast<uint64_t>('a' + rest % 26) << 8 * i;
    const uint64_t after = (start ^ mixed(first)) * kMultiplier;
    if (n == 0) std::memcpy(&target, "aaaaaaaa", 8), target = (after ^ mixed(target));
    const uint64_t second = unmixed(target ^ after);
    if (!is_plain(second)) continue;
    std::memcpy(name, &first, 8);
    std::memcpy(name + 8, &second, 8);
    const auto own = std::hash<std::string_view>{}({name, 16});
    if (found == 0) hash = own;
    if (own != hash) return 1;
    std::puts(name);
    ++found;
  }
}

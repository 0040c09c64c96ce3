#include "base/hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace tabella {
namespace {

uint64_t secret() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

struct Key {
  uint64_t k0 = secret();
  uint64_t k1 = secret();
};

const Key& key() {
  static const Key kKey;
  return kKey;
}

struct State {
  uint64_t v0;
  uint64_t v1;
  uint64_t v2;
  uint64_t v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void take(uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t keyed_hash(std::string_view bytes) {
  const auto& [k0, k1] = key();
  State state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
              k1 ^ 0x7465646279746573};
  const size_t size = bytes.size();
  uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes.remove_prefix(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    state.take(word);
  }
  word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
  state.take(word | static_cast<uint64_t>(size) << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace tabella

#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace tabella {
namespace {

constexpr auto kTable = [] {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ kPolynomial : value >> 1;
    table[i] = value;
  }
  return table;
}();

uint32_t by_table(std::string_view bytes, uint32_t crc) {
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(std::string_view bytes, uint32_t crc) {
  uint64_t wide = crc;
  for (; bytes.size() >= sizeof wide; bytes.remove_prefix(sizeof wide)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return by_table(bytes, static_cast<uint32_t>(wide));
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2");
  if (kHasInstruction) return ~by_instruction(bytes, ~before);
#endif
  return ~by_table(bytes, ~before);
}

}  // namespace tabella

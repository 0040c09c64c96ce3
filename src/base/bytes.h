// Reading and writing of integers in byte strings: big-endian where order matters, varints where size does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tabella {

inline void put_u16(std::string& out, uint16_t v) {
  out.push_back(static_cast<char>(v >> 8));
  out.push_back(static_cast<char>(v));
}

inline void put_u32(std::string& out, uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
}

inline void put_u64(std::string& out, uint64_t v) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
}

// Reads what put_u64 wrote; missing bytes count as zero.
inline uint64_t get_u64(std::string_view in) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8; ++i) v = v << 8 | (i < in.size() ? static_cast<uint8_t>(in[i]) : 0);
  return v;
}

inline void put_varint(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}

inline std::string encode_number(uint64_t v) {
  std::string bytes;
  put_varint(bytes, v);
  return bytes;
}

// Takes a varint off the front of `in`. Bytes are our own, so a malformed one yields what is there.
inline uint64_t take_varint(std::string_view& in) {
  uint64_t v = 0;
  for (int shift = 0; !in.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    v |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return v;
}

inline std::string_view take(std::string_view& in, size_t n) {
  const auto head = in.substr(0, n);
  in.remove_prefix(head.size());
  return head;
}

inline std::string_view take_sized(std::string_view& in) {
  const auto n = take_varint(in);
  return take(in, n);
}

inline void put_sized(std::string& out, std::string_view bytes) {
  put_varint(out, bytes.size());
  out.append(bytes);
}

}  // namespace tabella

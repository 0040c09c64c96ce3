#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tabella {

// CRC-32 as in zlib and `x-amz-crc32`; by libdeflate, which uses the processor's carry-less multiplication.
uint32_t crc32(std::string_view bytes);

// SHA-256, as 32 raw bytes.
std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);
// For protocols that ask for them; they protect nothing.
std::string hmac_md5(std::string_view key, std::string_view bytes);
std::string hmac_sha1(std::string_view key, std::string_view bytes);
std::string sha1(std::string_view bytes);
std::string to_hex(std::string_view bytes);

// Takes the same time wherever the two differ, so that it tells an attacker nothing.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace tabella

#include "base/checksum.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <libdeflate.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace tabella {
namespace {

// OpenSSL looks an algorithm up by its name, under locks, each time that it is asked for one: once is enough.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {}
  ~Sha256() { EVP_MD_CTX_free(context_); }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  std::string of(std::initializer_list<std::string_view> parts) {
    static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    EVP_DigestInit_ex2(context_, method, nullptr);
    for (const auto part : parts) EVP_DigestUpdate(context_, part.data(), part.size());
    std::string digest(kSize, '\0');
    EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
  }

  static constexpr size_t kSize = 32;
  static constexpr size_t kBlock = 64;

 private:
  EVP_MD_CTX* context_;
};

Sha256& sha256_of_thread() {
  thread_local Sha256 sha256;
  return sha256;
}

std::string hmac_by(const EVP_MD* method, size_t size, std::string_view key, std::string_view bytes) {
  std::string digest(size, '\0');
  HMAC(method, key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(bytes.data()),
       bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

}  // namespace

uint32_t crc32(std::string_view bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

std::string sha256(std::string_view bytes) { return sha256_of_thread().of({bytes}); }

// RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  auto& sha256 = sha256_of_thread();
  std::array<char, Sha256::kBlock> inner{};
  if (key.size() > inner.size()) {
    const auto hashed = sha256.of({key});
    std::ranges::copy(hashed, inner.begin());
  } else {
    std::ranges::copy(key, inner.begin());
  }
  auto outer = inner;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  const auto hashed = sha256.of({{inner.data(), inner.size()}, bytes});
  return sha256.of({{outer.data(), outer.size()}, hashed});
}

std::string hmac_md5(std::string_view key, std::string_view bytes) {
  return hmac_by(EVP_md5(), 16, key, bytes);
}

std::string hmac_sha1(std::string_view key, std::string_view bytes) {
  return hmac_by(EVP_sha1(), 20, key, bytes);
}

std::string sha1(std::string_view bytes) {
  std::string digest(20, '\0');
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha1(),
             nullptr);
  return digest;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex(bytes.size() * 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    hex[2 * i] = kDigits[byte >> 4];
    hex[2 * i + 1] = kDigits[byte & 15];
  }
  return hex;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tabella

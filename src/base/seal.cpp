#include "base/seal.h"

#include <cassert>
#include <memory>
#include <stdexcept>

#include <openssl/evp.h>

#include "base/random.h"

namespace tabella {
namespace {

constexpr size_t kNonce = 12;
constexpr size_t kTag = 16;

struct Freed {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Freed>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
int length_of(std::string_view text) { return static_cast<int>(text.size()); }

// Neither fails but for want of memory.
void must(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL cannot encrypt");
}

}  // namespace

std::string seal(std::string_view key, std::string_view text, std::string_view context) {
  assert(key.size() == kSealKeySize);
  const auto nonce = random_bytes(kNonce);
  std::string encrypted(text.size(), '\0');
  std::string tag(kTag, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  must(EVP_EncryptInit_ex2(cipher.get(), EVP_aes_256_gcm(), bytes_of(key), bytes_of(nonce), nullptr));
  must(EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes_of(context), length_of(context)));
  must(EVP_EncryptUpdate(cipher.get(), bytes_of(encrypted), &length, bytes_of(text), length_of(text)));
  must(EVP_EncryptFinal_ex(cipher.get(), nullptr, &length));
  must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTag, tag.data()));
  return nonce + encrypted + tag;
}

std::optional<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view context) {
  assert(key.size() == kSealKeySize);
  if (sealed.size() < kNonce + kTag) return std::nullopt;
  const auto nonce = sealed.substr(0, kNonce);
  const auto encrypted = sealed.substr(kNonce, sealed.size() - kNonce - kTag);
  std::string tag(sealed.substr(sealed.size() - kTag));
  std::string text(encrypted.size(), '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  must(EVP_DecryptInit_ex2(cipher.get(), EVP_aes_256_gcm(), bytes_of(key), bytes_of(nonce), nullptr));
  must(EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes_of(context), length_of(context)));
  must(EVP_DecryptUpdate(cipher.get(), bytes_of(text), &length, bytes_of(encrypted), length_of(encrypted)));
  must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTag, tag.data()));
  if (EVP_DecryptFinal_ex(cipher.get(), nullptr, &length) != 1) return std::nullopt;
  return text;
}

}  // namespace tabella

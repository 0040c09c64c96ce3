#include "base/public_key.h"

#include <memory>

#include <openssl/evp.h>
#include <openssl/pem.h>

namespace tabella {
namespace {

constexpr int kLeastBits = 2048;

struct FreePublicKey {
  void operator()(BIO* source) const { BIO_free(source); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::unique_ptr<EVP_PKEY, FreePublicKey> read_public_key(std::string_view pem) {
  const std::unique_ptr<BIO, FreePublicKey> source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return std::unique_ptr<EVP_PKEY, FreePublicKey>(
      source ? PEM_read_bio_PUBKEY(source.get(), nullptr, nullptr, nullptr) : nullptr);
}

const unsigned char* octets_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

bool verify_signature(std::string_view pem, SignatureKind kind, std::string_view bytes,
                      std::string_view signature) {
  const auto key = read_public_key(pem);
  const bool rsa = kind == SignatureKind::rsa_sha256;
  if (!key || EVP_PKEY_get_base_id(key.get()) != (rsa ? EVP_PKEY_RSA : EVP_PKEY_ED25519)) return false;
  const std::unique_ptr<EVP_MD_CTX, FreePublicKey> context(EVP_MD_CTX_new());
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, rsa ? EVP_sha256() : nullptr, nullptr, key.get()) ==
             1 &&
         EVP_DigestVerify(context.get(), octets_of(signature), signature.size(), octets_of(bytes),
                          bytes.size()) == 1;
}

std::string problem_with_public_key(std::string_view pem) {
  const auto key = read_public_key(pem);
  if (!key) return "it is no public key in PEM (-----BEGIN PUBLIC KEY-----)";
  const auto kind = EVP_PKEY_get_base_id(key.get());
  if (kind != EVP_PKEY_RSA && kind != EVP_PKEY_ED25519) return "it is neither RSA nor Ed25519";
  if (kind == EVP_PKEY_RSA && EVP_PKEY_get_bits(key.get()) < kLeastBits)
    return "RSA keys have 2048 bits or more";
  return {};
}

}  // namespace tabella

// Signatures that somebody else has made, by his public key.
#pragma once

#include <string>
#include <string_view>

namespace tabella {

enum class SignatureKind { rsa_sha256, ed25519 };

// Whether `signature` is one of `bytes` by the key, a PEM. A key of another kind has made none.
bool verify_signature(std::string_view pem, SignatureKind kind, std::string_view bytes,
                      std::string_view signature);
// What is wrong with a key; empty: nothing.
std::string problem_with_public_key(std::string_view pem);

}  // namespace tabella

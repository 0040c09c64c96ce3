// Authenticated encryption: AES-256-GCM with a random nonce.
//
// Nonces repeat by chance only after far more than 2^32 messages under one key: do not seal more than that.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tabella {

inline constexpr size_t kSealKeySize = 32;

// The nonce (12 bytes), the text encrypted, and the tag (16 bytes). Do not change: it is kept in stores.
// `context` is not in it, and must be the same when it is opened.
std::string seal(std::string_view key, std::string_view text, std::string_view context);

// Nothing if it was sealed by another key or for another context, or is not as it was.
std::optional<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view context);

}  // namespace tabella

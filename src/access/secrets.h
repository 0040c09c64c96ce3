// Secrets in the store (passwords of relays, secrets of webhooks) are kept encrypted: AES-256-GCM by a key
// that is in a file of its own, in the data folder or where --secret-key-file says.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tabella::access {

// The file in a data folder.
inline constexpr const char* kSecretKey = "secret.key";

// Thread-safe.
class Secrets {
 public:
  // Has no key: nothing can be sealed, and the sentence says why.
  Secrets() = default;
  // Reads the key, 32 bytes in base64; makes one, readable by its owner only, if there is none and `make`.
  // Warns of a file that others can read: where it comes from an orchestrator its mode is not ours to choose.
  // Throws std::runtime_error with a sentence for the user.
  static Secrets from_file(const std::filesystem::path& file, bool make);

  // `context` says what it is for, as in "mail webhook 17"; it opens only with the same.
  std::expected<std::string, std::string> seal(std::string_view secret, std::string_view context) const;
  // What was never sealed (by a version before this one) comes back as it is.
  std::expected<std::string, std::string> open(std::string_view sealed, std::string_view context) const;

 private:
  std::optional<std::string> key_;
};

}  // namespace tabella::access

// A hash for tables whose keys a stranger chooses: keyed by a secret of this process (SipHash-1-3), so that
// nobody can send keys that all fall into one bucket. std::hash has no secret.
#pragma once

#include <cstdint>
#include <string_view>

namespace tabella {

uint64_t keyed_hash(std::string_view bytes);

struct KeyedHash {
  using is_transparent = void;
  size_t operator()(std::string_view bytes) const { return keyed_hash(bytes); }
};

}  // namespace tabella

// Identifiers that must be unique, not secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tabella {

uint64_t random_bits();

// 52 characters of A–Z and 0–9, the shape of AWS's request ids.
std::string make_request_id();

// A random (version 4) UUID.
std::string make_uuid();
// In the shape of a UUID, the same for the same text.
std::string uuid_from(std::string_view text);

}  // namespace tabella

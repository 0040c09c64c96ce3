// Identifiers that must be unique, not secret.
#pragma once

#include <cstdint>
#include <string>

namespace tabella {

uint64_t random_bits();

// 52 characters of A–Z and 0–9, the shape of AWS's request ids.
std::string make_request_id();

// A random (version 4) UUID.
std::string make_uuid();

}  // namespace tabella

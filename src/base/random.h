// Bytes that nobody can guess: for keys, tokens and nonces. base/ids.h is for what only has to be unique.
#pragma once

#include <cstddef>
#include <string>

namespace tabella {

std::string random_bytes(size_t count);

}  // namespace tabella

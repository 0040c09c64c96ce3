// Content-Encoding and Accept-Encoding.
#pragma once

#include <optional>
#include <string_view>

#include "base/gzip.h"

namespace tabella::wire {

// The best that both sides know, by quality and then by order; nothing for none. As AWS reads the header, its
// leniency included.
std::optional<Compression> choose_encoding(std::string_view accept_encoding);

}  // namespace tabella::wire

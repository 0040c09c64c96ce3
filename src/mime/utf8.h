// Bytes that may or may not be UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace tabella::mime {

using tabella::to_valid_utf8;

// Text of a charset, as valid UTF-8. Of charsets that mail does not use, or that lie, as much as can be read.
std::string from_charset(std::string_view bytes, std::string_view charset);

}  // namespace tabella::mime

// Text as it is compared when people search: without case, accents, compatibility forms and runs of blanks,
// in every script.
#pragma once

#include <string>
#include <string_view>

namespace tabella::mime {

// `text` is UTF-8. Blanks at the ends stay, as one.
std::string fold(std::string_view text);

}  // namespace tabella::mime

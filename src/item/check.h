// Whether bytes that should be an item are one. For stores that may be damaged: everything else trusts its
// own bytes.
#pragma once

#include <string_view>

namespace tabella::item {

// Complete, canonical and of the size it says.
bool is_well_formed(std::string_view item_bytes);

}  // namespace tabella::item

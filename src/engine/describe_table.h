#pragma once

#include <string_view>

#include "store/error.h"

namespace tabella::engine {

// What the operations on tables say of one that is not there; those on items are briefer.
std::unexpected<store::Error> table_not_found(std::string_view name);

}  // namespace tabella::engine

#pragma once

#include <string_view>

namespace tabella {

// Why a text is not JSON that JsonDocument (base/json.h) takes, as a part of a sentence; empty: it is. Reads
// it all again, so it is for those that were refused.
std::string_view json_problem(std::string_view text);

}  // namespace tabella

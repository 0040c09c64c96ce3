// Text to tree. What can be said without the request's names and values is checked here, so that a parse —
// and its error — can be cached by text; the rest is bind.h's.
#pragma once

#include <string_view>

#include "base/result.h"
#include "expression/tree.h"

namespace tabella::expression {

// Errors lack the "Invalid …Expression: " in front; whoever knows which parameter it was adds it.
Checked<Condition> parse_condition(std::string_view text);
Checked<Update> parse_update(std::string_view text);
Checked<Projection> parse_projection(std::string_view text);

}  // namespace tabella::expression

// JSON Schema (draft 2020-12) for messages: what an inbox may ask of them.
//
// All of its assertions and applicators but dynamic references, unevaluated… and dependent… are understood;
// `format` is an annotation, as the standard has it. A schema that says anything else is refused when it is
// set, rather than overlooked later. Patterns are RE2's, which take no more time than the text is long.
#pragma once

#include <string>

#include "base/json.h"

namespace tabella::inbox {

inline constexpr size_t kMostSchema = 32 * 1024;

// What is wrong with a schema; empty: nothing.
std::string problem_with_schema(JsonValue schema);

// Why a value is not as the schema asks: "body.lines[2]: expected a number"; empty: it is.
std::string mismatch_with_schema(JsonValue schema, JsonValue value);

}  // namespace tabella::inbox

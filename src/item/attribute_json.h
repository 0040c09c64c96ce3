// DynamoDB's JSON for attribute values: {"S": "…"}, {"M": {…}}, and what AWS says of malformed ones.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "item/value.h"

namespace tabella::item {

// What can be wrong with a value read from JSON. A value of the wrong JSON type is a serialization error and
// wins over everything else in the request; a value that breaks a rule is a validation error, whose turn
// comes later.
struct JsonFault {
  enum class Kind { serialization, validation };
  Kind kind;
  std::string message;
};

template <class T>
using JsonResult = std::expected<T, JsonFault>;

// Appends the flat form of the value.
JsonResult<void> read_value(std::string& out, JsonValue json);

JsonResult<Item> read_item(JsonValue json);

void append_value_json(std::string& out, ValueView value);
void append_item_json(std::string& out, ItemView item);

// How AWS prints a value in an error message: {S:abc}
std::string describe_value(ValueView value);

}  // namespace tabella::item

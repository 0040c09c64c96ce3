#include "item/attribute_json.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/hash.h"
#include "item/number.h"

namespace tabella::item {
namespace {

constexpr size_t kMaxAttributeName = 65535;
constexpr const char* kOneOf = "must contain exactly one of the supported datatypes";
constexpr const char* kInvalidPrefix = "One or more parameter values were invalid: ";

std::unexpected<JsonFault> serialization(std::string message) {
  return std::unexpected(JsonFault{JsonFault::Kind::serialization, std::move(message)});
}

std::unexpected<JsonFault> validation(std::string message) {
  return std::unexpected(JsonFault{JsonFault::Kind::validation, std::move(message)});
}

JsonResult<std::string_view> read_string(JsonValue json) {
  using Kind = JsonValue::Kind;
  switch (json.kind()) {
    case Kind::string: return json.string();
    case Kind::boolean:
      return serialization(json.boolean() ? "TRUE_VALUE cannot be converted to String"
                                          : "FALSE_VALUE cannot be converted to String");
    case Kind::integer: return serialization("NUMBER_VALUE cannot be converted to String");
    case Kind::real: return serialization("DECIMAL_VALUE cannot be converted to String");
    case Kind::array: return serialization("Unrecognized collection type class java.lang.String");
    case Kind::object: return serialization("Start of structure or map found where not expected");
    case Kind::null: break;
  }
  return serialization("NULL_VALUE cannot be converted to String");
}

JsonResult<std::string> read_binary(JsonValue json) {
  using Kind = JsonValue::Kind;
  switch (json.kind()) {
    case Kind::string: break;
    case Kind::array: return serialization("Unrecognized collection type class java.nio.ByteBuffer");
    case Kind::object: return serialization("Start of structure or map found where not expected");
    case Kind::null:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: return serialization("only base-64-encoded strings are convertible to bytes");
  }
  const auto text = json.string();
  if (text.size() % 4 != 0)
    return serialization(
        fmt::format("Base64 encoded length is expected a multiple of 4 bytes but found: {}", text.size()));
  auto bytes = from_base64(text);
  if (!bytes) return serialization("Invalid last non-pad Base64 character dectected");
  return std::move(*bytes);
}

JsonResult<bool> read_boolean(JsonValue json) {
  using Kind = JsonValue::Kind;
  switch (json.kind()) {
    case Kind::boolean: return json.boolean();
    case Kind::integer: return serialization("NUMBER_VALUE cannot be converted to Boolean");
    case Kind::real: return serialization("DECIMAL_VALUE cannot be converted to Boolean");
    case Kind::array: return serialization("Unrecognized collection type class java.lang.Boolean");
    case Kind::object: return serialization("Start of structure or map found where not expected");
    case Kind::string:
      if (const auto word = boolean_word(json.string())) return *word;
      break;
    case Kind::null: break;
  }
  return serialization("Unexpected token received from parser");
}

JsonResult<std::string> read_number(JsonValue json) {
  TABELLA_ASSIGN(const auto text, read_string(json));
  auto number = parse_number(text);
  if (!number) return validation(std::move(number).error().message);
  return std::move(*number);
}

JsonResult<std::string> read_set_element(JsonValue json, Type type) {
  if (type == Type::BS) return read_binary(json);
  if (type == Type::NS) return read_number(json);
  TABELLA_ASSIGN(const auto text, read_string(json));
  return std::string(text);
}

JsonResult<void> read_set(std::string& out, JsonValue json, Type type) {
  if (json.kind() == JsonValue::Kind::object)
    return serialization("Start of structure or map found where not expected");
  if (json.kind() != JsonValue::Kind::array) return serialization("Unexpected field type");
  std::vector<std::string> contents;
  std::string shown = "[";
  for (JsonElements e(json); e.next();) {
    TABELLA_ASSIGN(auto content, read_set_element(e.value(), type));
    contents.push_back(std::move(content));
    shown.append(shown.size() > 1 ? ", " : "").append(e.value().string());
  }
  shown.push_back(']');
  if (contents.empty()) {
    if (type == Type::BS) return validation(fmt::format("{}Binary sets should not be empty", kInvalidPrefix));
    return validation(
        fmt::format("{}An {} set  may not be empty", kInvalidPrefix, type == Type::SS ? "string" : "number"));
  }
  // In the order that DynamoDB returns them in, which is that of their bytes for numbers as well.
  std::ranges::sort(contents);
  if (std::ranges::adjacent_find(contents) != contents.end()) {
    if (type == Type::NS) return validation("Input collection contains duplicates");
    return validation(fmt::format("{}Input collection {}{} contains duplicates.", kInvalidPrefix, shown,
                                  type == Type::BS ? "of type BS" : ""));
  }
  ContainerEncoder set(out, type);
  for (const auto& content : contents) set.add_content(content);
  set.finish();
  return {};
}

JsonResult<void> check_name(std::string_view name) {
  if (name.empty()) return validation(fmt::format("{}Empty attribute name", kInvalidPrefix));
  if (name.size() > kMaxAttributeName)
    return validation(fmt::format("{}Attribute name is too large, must be less than {} bytes", kInvalidPrefix,
                                  kMaxAttributeName + 1));
  return {};
}

// The names of one JSON object. A name that comes twice has no meaning that all readers share.
class Names {
 public:
  JsonResult<void> add(std::string_view name) {
    constexpr size_t kFew = 16;
    bool fresh = false;
    if (few_.size() < kFew) {
      fresh = std::ranges::find(few_, name) == few_.end();
      few_.push_back(name);
    } else {
      if (many_.empty()) many_.insert(few_.begin(), few_.end());
      fresh = many_.insert(name).second;
    }
    if (fresh) return {};
    return serialization(fmt::format("Duplicate attribute name: {}", name));
  }

 private:
  std::vector<std::string_view> few_;
  std::unordered_set<std::string_view, KeyedHash> many_;
};

JsonResult<void> read_nested(std::string& out, JsonValue json, int depth);

JsonResult<void> read_list(std::string& out, JsonValue json, int depth) {
  if (json.kind() == JsonValue::Kind::object)
    return serialization("Start of structure or map found where not expected");
  if (json.kind() != JsonValue::Kind::array) return serialization("Unexpected field type");
  if (depth > kMaxNesting) return validation(kTooDeep);
  ContainerEncoder list(out, Type::L);
  for (JsonElements e(json); e.next();) {
    list.start_element();
    TABELLA_TRY(read_nested(out, e.value(), depth + 1));
  }
  list.finish();
  return {};
}

JsonResult<void> read_map(std::string& out, JsonValue json, int depth) {
  if (json.kind() == JsonValue::Kind::array)
    return serialization(
        "Unrecognized collection type java.util.Map<java.lang.String, "
        "com.amazonaws.dynamodb.v20120810.AttributeValue>");
  if (json.kind() != JsonValue::Kind::object) return serialization("Unexpected field type");
  if (depth > kMaxNesting) return validation(kTooDeep);
  ContainerEncoder map(out, Type::M);
  Names names;
  for (JsonElements e(json); e.next();) {
    TABELLA_TRY(names.add(e.key()));
    map.start_member(e.key());
    TABELLA_TRY(read_nested(out, e.value(), depth + 1));
  }
  map.finish();
  return {};
}

JsonResult<void> read_typed(std::string& out, Type type, JsonValue json, int depth) {
  switch (type) {
    case Type::S: {
      TABELLA_ASSIGN(const auto text, read_string(json));
      append_scalar(out, Type::S, text);
      return {};
    }
    case Type::N: {
      TABELLA_ASSIGN(const auto number, read_number(json));
      append_scalar(out, Type::N, number);
      return {};
    }
    case Type::B: {
      TABELLA_ASSIGN(const auto bytes, read_binary(json));
      append_scalar(out, Type::B, bytes);
      return {};
    }
    case Type::BOOL: {
      TABELLA_ASSIGN(const auto value, read_boolean(json));
      append_boolean(out, value);
      return {};
    }
    case Type::NUL: {
      TABELLA_ASSIGN(const auto value, read_boolean(json));
      if (!value)
        return validation(
            fmt::format("{}Null attribute value types must have the value of true", kInvalidPrefix));
      append_null(out);
      return {};
    }
    case Type::SS:
    case Type::NS:
    case Type::BS: return read_set(out, json, type);
    case Type::L: return read_list(out, json, depth);
    case Type::M: return read_map(out, json, depth);
  }
  return {};
}

JsonResult<void> read_nested(std::string& out, JsonValue json, int depth) {
  if (json.kind() == JsonValue::Kind::array)
    return serialization(
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue");
  if (json.kind() != JsonValue::Kind::object) return serialization("Unexpected value type in payload");
  int datatypes = 0;
  const size_t start = out.size();
  for (JsonElements e(json); e.next();) {
    const auto type = type_from_name(e.key());
    if (!type || e.value().kind() == JsonValue::Kind::null) continue;
    ++datatypes;
    out.resize(start);
    TABELLA_TRY(read_typed(out, *type, e.value(), depth));
  }
  if (datatypes == 0) return validation(fmt::format("Supplied AttributeValue is empty, {}", kOneOf));
  if (datatypes > 1)
    return validation(fmt::format("Supplied AttributeValue has more than one datatypes set, {}", kOneOf));
  return {};
}

}  // namespace

JsonResult<void> read_value(std::string& out, JsonValue json) { return read_nested(out, json, 1); }

JsonResult<Item> read_item(JsonValue json) {
  if (json.kind() == JsonValue::Kind::array)
    return serialization(
        "Unrecognized collection type java.util.Map<java.lang.String, "
        "com.amazonaws.dynamodb.v20120810.AttributeValue>");
  if (json.kind() != JsonValue::Kind::object) return serialization("Unexpected field type");
  ItemBuilder builder;
  std::string flat;
  std::optional<JsonFault> first_fault;  // a serialization error further on still wins
  Names names;
  for (JsonElements e(json); e.next();) {
    TABELLA_TRY(names.add(e.key()));
    flat.clear();
    auto read = check_name(e.key());
    if (read) read = read_value(flat, e.value());
    if (read) {
      builder.add(e.key(), ValueView(flat));
    } else if (read.error().kind == JsonFault::Kind::serialization) {
      return std::unexpected(std::move(read).error());
    } else if (!first_fault) {
      first_fault = std::move(read).error();
    }
  }
  if (first_fault) return std::unexpected(std::move(*first_fault));
  return builder.finish();
}

namespace {

// What stands before a value, by its type.
constexpr std::array<std::string_view, 11> kOpening = {
    "",          R"({"S":)",    R"({"N":)",    R"({"B":)", R"({"SS":)", R"({"NS":)",
    R"({"BS":)", R"({"BOOL":)", R"({"NULL":)", R"({"L":)", R"({"M":)"};

void append_content_json(std::string& out, Type type, std::string_view content) {
  if (type == Type::N || type == Type::NS) {
    out.push_back('"');
    append_number_text(out, content);
    out.push_back('"');
  } else if (type == Type::B || type == Type::BS) {
    out.push_back('"');
    append_base64(out, content);
    out.push_back('"');
  } else {
    append_json_string(out, content);
  }
}

}  // namespace

void append_value_json(std::string& out, ValueView value) {
  const Type type = value.type();
  out.append(kOpening[static_cast<size_t>(type)]);
  switch (type) {
    case Type::S:
    case Type::N:
    case Type::B: append_content_json(out, type, value.content()); break;
    case Type::BOOL: out.append(value.boolean() ? "true" : "false"); break;
    case Type::NUL: out.append("true"); break;
    case Type::SS:
    case Type::NS:
    case Type::BS: {
      JsonArrayWriter array(out);
      for (const auto content : ordered_contents(value)) append_content_json(array.element(), type, content);
      break;
    }
    case Type::L: {
      JsonArrayWriter array(out);
      for (Elements e(value); e.next();) append_value_json(array.element(), e.value());
      break;
    }
    case Type::M: {
      JsonObjectWriter object(out);
      for (Elements e(value); e.next();) append_value_json(object.key(e.name()), e.value());
      break;
    }
  }
  out.push_back('}');
}

void append_item_json(std::string& out, ItemView item) {
  JsonObjectWriter object(out);
  for (Attributes a(item); a.next();) append_value_json(object.key(a.name()), a.value());
}

std::string describe_value(ValueView value) {
  const Type type = value.type();
  std::string out = fmt::format("{{{}:", type_name(type));
  if (type == Type::S)
    out.append(value.content());
  else if (type == Type::N)
    append_number_text(out, value.content());
  else if (type == Type::BOOL)
    out.append(value.boolean() ? "true" : "false");
  else if (type == Type::NUL)
    out.append("true");
  else if (type == Type::B)
    append_base64(out, value.content());
  out.push_back('}');
  return out;
}

}  // namespace tabella::item

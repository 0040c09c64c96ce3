#include "inbox/schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/text.h"

namespace tabella::inbox {
namespace {

using Kind = JsonValue::Kind;

constexpr int kDeepestSchema = 32;
constexpr size_t kMostPattern = 1000;
constexpr size_t kMostSteps = 20'000;  // each a schema held against a value, or as much work

// What the value of a keyword must be.
enum class Expects {
  schema,
  schemas,
  named_schemas,
  names,
  number,
  count,
  flag,
  pattern,
  type,
  anything,
  list,
  text
};
const std::map<std::string_view, Expects> kKeywords = {
    {"type", Expects::type},
    {"enum", Expects::list},
    {"const", Expects::anything},
    {"properties", Expects::named_schemas},
    {"patternProperties", Expects::named_schemas},
    {"additionalProperties", Expects::schema},
    {"propertyNames", Expects::schema},
    {"required", Expects::names},
    {"minProperties", Expects::count},
    {"maxProperties", Expects::count},
    {"items", Expects::schema},
    {"prefixItems", Expects::schemas},
    {"contains", Expects::schema},
    {"minItems", Expects::count},
    {"maxItems", Expects::count},
    {"minContains", Expects::count},
    {"maxContains", Expects::count},
    {"uniqueItems", Expects::flag},
    {"minLength", Expects::count},
    {"maxLength", Expects::count},
    {"pattern", Expects::pattern},
    {"minimum", Expects::number},
    {"maximum", Expects::number},
    {"exclusiveMinimum", Expects::number},
    {"exclusiveMaximum", Expects::number},
    {"multipleOf", Expects::number},
    {"allOf", Expects::schemas},
    {"anyOf", Expects::schemas},
    {"oneOf", Expects::schemas},
    {"not", Expects::schema},
    {"if", Expects::schema},
    {"then", Expects::schema},
    {"else", Expects::schema},
    {"$ref", Expects::text},
    {"$defs", Expects::named_schemas},
    {"definitions", Expects::named_schemas},
    {"format", Expects::text},
    {"title", Expects::text},
    {"description", Expects::text},
    {"$comment", Expects::text},
    {"$schema", Expects::text},
    {"$id", Expects::text},
    {"default", Expects::anything},
    {"examples", Expects::anything},
    {"deprecated", Expects::flag},
    {"readOnly", Expects::flag},
    {"writeOnly", Expects::flag},
};
constexpr std::string_view kTypes[] = {"null", "boolean", "integer", "number", "string", "array", "object"};

// Of an object; unlike JsonValue::find a null is there.
std::optional<JsonValue> schema_member(JsonValue object, std::string_view name) {
  if (!object.is_object()) return {};
  for (JsonElements each(object); each.next();)
    if (each.key() == name) return each.value();
  return {};
}

bool is_type_name(JsonValue value) {
  return value.kind() == Kind::string && std::ranges::find(kTypes, value.string()) != std::end(kTypes);
}

// "#", "#/$defs/address", "#/properties/a/items".
std::optional<JsonValue> resolve(JsonValue root, std::string_view reference) {
  if (reference == "#") return root;
  if (!reference.starts_with("#/")) return {};
  auto at = root;
  for (auto part : split(reference.substr(2), '/')) {
    std::string name(part);
    for (const auto& [escaped, plain] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}})
      for (size_t found = 0; (found = name.find(escaped, found)) != std::string::npos; ++found)
        name.replace(found, 2, plain);
    if (at.kind() == Kind::array) {
      size_t index = 0;
      std::optional<JsonValue> element;
      for (JsonElements each(at); each.next(); ++index)
        if (name == std::to_string(index)) element = each.value();
      if (!element) return {};
      at = *element;
    } else {
      const auto next = schema_member(at, name);
      if (!next) return {};
      at = *next;
    }
  }
  return at;
}

// --- looking at a schema

class SchemaCheck {
 public:
  explicit SchemaCheck(JsonValue root) : root_(root) {}

  std::string problem(JsonValue schema, int depth = 0) const {
    if (schema.kind() == Kind::boolean) return {};
    if (!schema.is_object()) return "a schema is an object, true or false";
    if (depth > kDeepestSchema) return "its schemas stand too deep in each other";
    for (JsonElements each(schema); each.next();) {
      const auto known = kKeywords.find(each.key());
      if (known == kKeywords.end())
        return fmt::format("{} is not known here; leave it out", printable(each.key()));
      if (auto wrong = problem_of(known->second, each.value(), depth); !wrong.empty())
        return fmt::format("{}: {}", each.key(), wrong);
      if (each.key() == "patternProperties")
        for (JsonElements pattern(each.value()); pattern.next();)
          if (auto wrong = problem_with_pattern(pattern.key()); !wrong.empty()) return wrong;
      if (each.key() == "$ref" && !resolve(root_, each.value().string()))
        return fmt::format("$ref: there is no {} in this schema", printable(each.value().string()));
    }
    return {};
  }

 private:
  static std::string problem_with_pattern(std::string_view pattern) {
    if (pattern.size() > kMostPattern) return fmt::format("a pattern has at most {} bytes", kMostPattern);
    const re2::RE2 compiled(re2::StringPiece(pattern.data(), pattern.size()), re2::RE2::Quiet);
    return compiled.ok() ? std::string() : fmt::format("the pattern cannot be read: {}", compiled.error());
  }

  std::string problem_of_each(JsonValue container, int depth) const {
    for (JsonElements each(container); each.next();)
      if (auto wrong = problem(each.value(), depth + 1); !wrong.empty()) return wrong;
    return {};
  }

  std::string problem_of(Expects expects, JsonValue value, int depth) const {
    const auto kind = value.kind();
    switch (expects) {
      case Expects::anything: return {};
      case Expects::schema: return problem(value, depth + 1);
      case Expects::schemas:
        return kind == Kind::array ? problem_of_each(value, depth) : "expected a list of schemas";
      case Expects::named_schemas:
        return kind == Kind::object ? problem_of_each(value, depth) : "expected an object of schemas";
      case Expects::list: return kind == Kind::array ? "" : "expected a list";
      case Expects::names:
        if (kind != Kind::array) return "expected a list of names";
        for (JsonElements each(value); each.next();)
          if (each.value().kind() != Kind::string) return "expected a list of names";
        return {};
      case Expects::number: return value.is_number() ? "" : "expected a number";
      case Expects::count:
        return kind == Kind::integer && value.integer() >= 0 ? "" : "expected a number from 0 on";
      case Expects::flag: return kind == Kind::boolean ? "" : "expected true or false";
      case Expects::text: return kind == Kind::string ? "" : "expected a text";
      case Expects::pattern:
        return kind == Kind::string ? problem_with_pattern(value.string()) : "expected a text";
      case Expects::type:
        if (is_type_name(value)) return {};
        if (kind != Kind::array) return "expected null, boolean, integer, number, string, array or object";
        for (JsonElements each(value); each.next();)
          if (!is_type_name(each.value())) return "expected a list of types";
        return {};
    }
    return {};
  }

  const JsonValue root_;
};

// --- holding a value against it

bool has_type(JsonValue value, std::string_view type) {
  switch (value.kind()) {
    case Kind::null: return type == "null";
    case Kind::boolean: return type == "boolean";
    case Kind::string: return type == "string";
    case Kind::array: return type == "array";
    case Kind::object: return type == "object";
    case Kind::integer: return type == "integer" || type == "number";
    case Kind::real:
      return type == "number" || (type == "integer" && std::trunc(value.real()) == value.real());
  }
  return false;
}

// The same text for values that are equal: members by their names, numbers as they are shortest.
std::string canonical(JsonValue value) {
  std::string text;
  if (value.kind() == Kind::array) {
    text = "[";
    for (JsonElements each(value); each.next();) text.append(canonical(each.value())).append(",");
    return text + "]";
  }
  if (value.kind() == Kind::object) {
    std::map<std::string_view, std::string> members;
    for (JsonElements each(value); each.next();) members[each.key()] = canonical(each.value());
    text = "{";
    for (const auto& [name, member] : members) {
      append_json_string(text, name);
      text.append(":").append(member).append(",");
    }
    return text + "}";
  }
  append_json(text, value);
  return text;
}

size_t elements_in(JsonValue container) {
  size_t count = 0;
  for (JsonElements each(container); each.next();) ++count;
  return count;
}

int64_t characters_in(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

class Validator {
 public:
  explicit Validator(JsonValue root) : root_(root) {}

  // Also where what takes too long is inside a "not", and would have passed.
  std::string check(JsonValue value) {
    auto wrong = validate(root_, value, "");
    return too_long_ || steps_ > kMostSteps ? "it takes too long to check" : wrong;
  }

 private:
  std::string validate(JsonValue schema, JsonValue value, const std::string& path, int depth = 0) {
    too_long_ = too_long_ || ++steps_ > kMostSteps || depth > 2 * kDeepestSchema;
    if (too_long_) return at(path, "it takes too long to check");
    if (schema.kind() == Kind::boolean) return schema.boolean() ? "" : at(path, "is not allowed");
    for (JsonElements each(schema); each.next();)
      if (auto wrong = assert_one(schema, each.key(), each.value(), value, path, depth); !wrong.empty())
        return wrong;
    return {};
  }

  static std::string at(const std::string& path, std::string_view what) {
    return path.empty() ? std::string(what) : fmt::format("{}: {}", path, what);
  }
  static std::string below(const std::string& path, std::string_view name) {
    return path.empty() ? printable(name) : fmt::format("{}.{}", path, printable(name));
  }

  std::string assert_one(JsonValue schema, std::string_view keyword, JsonValue asked, JsonValue value,
                         const std::string& path, int depth) {
    const auto equals_text = [&](JsonValue other, const std::string& text) {
      auto its_text = canonical(other);
      steps_ += its_text.size() / 64;
      return its_text == text;
    };
    const auto matches = [&](JsonValue other) { return validate(other, value, path, depth + 1).empty(); };
    if (keyword == "$ref") {
      const auto target = resolve(root_, asked.string());
      return target ? validate(*target, value, path, depth + 1) : at(path, "its schema is not there");
    }
    if (keyword == "allOf") {
      for (JsonElements each(asked); each.next();)
        if (auto wrong = validate(each.value(), value, path, depth + 1); !wrong.empty()) return wrong;
      return {};
    }
    if (keyword == "anyOf" || keyword == "oneOf") {
      int count = 0;
      for (JsonElements each(asked); each.next();) count += matches(each.value());
      if (count == 0) return at(path, "is none of what it may be");
      return count > 1 && keyword == "oneOf" ? at(path, "is several of what it may be one of") : "";
    }
    if (keyword == "not") return matches(asked) ? at(path, "is what it must not be") : "";
    if (keyword == "if") {
      const auto next = schema_member(schema, matches(asked) ? "then" : "else");
      return next ? validate(*next, value, path, depth + 1) : "";
    }
    if (keyword == "type") {
      bool fits = asked.kind() == Kind::string && has_type(value, asked.string());
      std::string expected(asked.kind() == Kind::string ? asked.string() : "");
      if (asked.kind() == Kind::array)
        for (JsonElements each(asked); each.next();) {
          fits = fits || has_type(value, each.value().string());
          expected.append(expected.empty() ? "" : " or ").append(each.value().string());
        }
      return fits ? "" : at(path, "expected " + expected);
    }
    if (keyword == "const")
      return equals_text(value, canonical(asked)) ? "" : at(path, "is not what it must be");
    if (keyword == "enum") {
      const auto text = canonical(value);
      steps_ += text.size() / 64;
      for (JsonElements each(asked); each.next();)
        if (equals_text(each.value(), text)) return {};
      return at(path, "is none of what it may be");
    }
    if (value.kind() == Kind::string) return assert_text(keyword, asked, value.string(), path);
    if (value.is_number()) return assert_number(keyword, asked, value.real(), path);
    if (value.kind() == Kind::array) return assert_array(schema, keyword, asked, value, path, depth);
    if (value.kind() == Kind::object) return assert_object(schema, keyword, asked, value, path, depth);
    return {};
  }

  std::string assert_text(std::string_view keyword, JsonValue asked, std::string_view text,
                          const std::string& path) {
    steps_ += text.size() / 256;
    if (keyword == "minLength" && characters_in(text) < asked.integer())
      return at(path, fmt::format("is shorter than {} characters", asked.integer()));
    if (keyword == "maxLength" && characters_in(text) > asked.integer())
      return at(path, fmt::format("is longer than {} characters", asked.integer()));
    if (keyword == "pattern" && !matches_pattern(asked.string(), text))
      return at(path, fmt::format("does not match {}", printable(asked.string())));
    return {};
  }

  std::string assert_number(std::string_view keyword, JsonValue asked, double number,
                            const std::string& path) {
    const auto limit = asked.is_number() ? asked.real() : 0;
    if (keyword == "minimum" && number < limit) return at(path, fmt::format("is less than {}", limit));
    if (keyword == "maximum" && number > limit) return at(path, fmt::format("is more than {}", limit));
    if (keyword == "exclusiveMinimum" && number <= limit)
      return at(path, fmt::format("must be more than {}", limit));
    if (keyword == "exclusiveMaximum" && number >= limit)
      return at(path, fmt::format("must be less than {}", limit));
    if (keyword == "multipleOf" && limit > 0) {
      const auto times = number / limit;
      if (std::abs(times - std::round(times)) > 1e-9)
        return at(path, fmt::format("is no multiple of {}", limit));
    }
    return {};
  }

  std::string assert_array(JsonValue schema, std::string_view keyword, JsonValue asked, JsonValue array,
                           const std::string& path, int depth) {
    const auto count = static_cast<int64_t>(elements_in(array));
    steps_ += static_cast<size_t>(count) / 64;
    if (keyword == "minItems" && count < asked.integer())
      return at(path, fmt::format("has less than {} elements", asked.integer()));
    if (keyword == "maxItems" && count > asked.integer())
      return at(path, fmt::format("has more than {} elements", asked.integer()));
    if (keyword == "uniqueItems" && asked.boolean()) {
      std::set<std::string> seen;
      for (JsonElements each(array); each.next();) {
        auto text = canonical(each.value());
        steps_ += 1 + text.size() / 64;
        if (!seen.insert(std::move(text)).second) return at(path, "has an element twice");
      }
    }
    if (keyword == "contains") {
      const auto least = schema_member(schema, "minContains"), most = schema_member(schema, "maxContains");
      int64_t found = 0;
      for (JsonElements each(array); each.next();)
        found += validate(asked, each.value(), path, depth + 1).empty();
      if (found < (least ? least->integer() : 1))
        return at(path, "has too few elements of the kind that it must have");
      if (most && found > most->integer()) return at(path, "has too many elements of a kind");
    }
    if (keyword != "items" && keyword != "prefixItems") return {};
    // Those of the prefix have schemas of their own; the others share one.
    const auto prefix =
        keyword == "prefixItems" ? std::optional(asked) : schema_member(schema, "prefixItems");
    std::vector<JsonValue> own;
    if (prefix)
      for (JsonElements each(*prefix); each.next();) own.push_back(each.value());
    size_t index = 0;
    for (JsonElements each(array); each.next(); ++index) {
      const bool in_prefix = index < own.size();
      if (in_prefix != (keyword == "prefixItems")) continue;
      const auto where = fmt::format("{}[{}]", path, index);
      if (auto wrong = validate(in_prefix ? own[index] : asked, each.value(), where, depth + 1);
          !wrong.empty())
        return wrong;
    }
    return {};
  }

  std::string assert_object(JsonValue schema, std::string_view keyword, JsonValue asked, JsonValue object,
                            const std::string& path, int depth) {
    if (keyword == "minProperties" && static_cast<int64_t>(elements_in(object)) < asked.integer())
      return at(path, fmt::format("has less than {} members", asked.integer()));
    if (keyword == "maxProperties" && static_cast<int64_t>(elements_in(object)) > asked.integer())
      return at(path, fmt::format("has more than {} members", asked.integer()));
    steps_ += elements_in(object) / 64;
    if (keyword == "required") {
      steps_ += elements_in(asked) * elements_in(object) / 64;
      if (steps_ > kMostSteps) return at(path, "it takes too long to check");
      for (JsonElements each(asked); each.next();)
        if (!schema_member(object, each.value().string()))
          return at(below(path, each.value().string()), "is missing");
    }
    if (keyword == "propertyNames") {
      for (JsonElements each(object); each.next();) {
        std::string name;
        append_json_string(name, each.key());
        JsonDocument document;
        const auto value = document.parse(name);
        if (value && !validate(asked, *value, path, depth + 1).empty())
          return at(below(path, each.key()), "is no name that it may have");
      }
    }
    if (keyword != "properties" && keyword != "patternProperties" && keyword != "additionalProperties")
      return {};
    const auto properties = schema_member(schema, "properties");
    const auto patterns = schema_member(schema, "patternProperties");
    if (properties) steps_ += elements_in(*properties) * elements_in(object) / 64;
    if (steps_ > kMostSteps) return at(path, "it takes too long to check");
    for (JsonElements each(object); each.next();) {
      const auto own = properties ? schema_member(*properties, each.key()) : std::nullopt;
      bool known = own.has_value();
      const auto check = [&](JsonValue other) {
        return validate(other, each.value(), below(path, each.key()), depth + 1);
      };
      if (keyword == "properties" && own)
        if (auto wrong = check(*own); !wrong.empty()) return wrong;
      if (patterns && keyword != "properties")
        for (JsonElements pattern(*patterns); pattern.next();) {
          if (!matches_pattern(pattern.key(), each.key())) continue;
          known = true;
          if (keyword == "patternProperties")
            if (auto wrong = check(pattern.value()); !wrong.empty()) return wrong;
        }
      if (keyword == "additionalProperties" && !known)
        if (auto wrong = check(asked); !wrong.empty()) return wrong;
    }
    return {};
  }

  bool matches_pattern(std::string_view pattern, std::string_view text) {
    steps_ += 1 + text.size() / 256;
    auto& compiled = patterns_[std::string(pattern)];
    if (!compiled)
      compiled =
          std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), re2::RE2::Quiet);
    return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled);
  }

  const JsonValue root_;
  std::map<std::string, std::unique_ptr<re2::RE2>> patterns_;
  size_t steps_ = 0;
  bool too_long_ = false;
};

}  // namespace

std::string problem_with_schema(JsonValue schema) {
  if (!schema.is_object()) return "expected a JSON Schema, an object";
  return SchemaCheck(schema).problem(schema);
}

std::string mismatch_with_schema(JsonValue schema, JsonValue value) { return Validator(schema).check(value); }

}  // namespace tabella::inbox

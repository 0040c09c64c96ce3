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
constexpr size_t kMostPatterns = 32;
constexpr int64_t kMostPatternMemory = 64 * 1024;  // of each, as RE2 counts it
// What may be spent on a schema, and on each message that is held against it: some milliseconds.
constexpr size_t kMostSteps = 100'000;
constexpr size_t kStepsOfSchema = 8;  // to hold a schema against a value
constexpr size_t kBytesInStep = 16;   // of a text that is read
constexpr size_t kStatesInStep = 16;  // of a pattern, times bytes in a step
constexpr const char* kTooLong = "it takes too long to check";

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

using Patterns = std::map<std::string, std::unique_ptr<re2::RE2>, std::less<>>;

// What is left of the steps that may be taken. Who sees the end of them stops, whatever has been found.
class Budget {
 public:
  bool spend(size_t steps) {
    left_ -= std::min(left_, steps);
    return left_ > 0;
  }
  bool is_spent() const { return left_ == 0; }

 private:
  size_t left_ = kMostSteps;
};

// Each element is a step.
class Elements {
 public:
  Elements(JsonValue container, Budget& budget) : each_(container), budget_(budget) {}
  bool next() { return budget_.spend(1) && each_.next(); }
  std::string_view key() const { return each_.key(); }
  JsonValue value() const { return each_.value(); }

 private:
  JsonElements each_;
  Budget& budget_;
};

// Of an object; unlike JsonValue::find a null is there.
std::optional<JsonValue> schema_member(JsonValue object, std::string_view name, Budget& budget) {
  if (!object.is_object()) return {};
  for (Elements each(object, budget); each.next();)
    if (each.key() == name) return each.value();
  return {};
}

bool is_type_name(JsonValue value) {
  return value.kind() == Kind::string && std::ranges::find(kTypes, value.string()) != std::end(kTypes);
}

// "#", "#/$defs/address", "#/properties/a/items".
std::optional<JsonValue> resolve(JsonValue root, std::string_view reference, Budget& budget) {
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
      for (Elements each(at, budget); each.next(); ++index)
        if (name == std::to_string(index)) element = each.value();
      if (!element) return {};
      at = *element;
    } else {
      const auto next = schema_member(at, name, budget);
      if (!next) return {};
      at = *next;
    }
  }
  return at;
}

// --- looking at a schema

class SchemaCheck {
 public:
  SchemaCheck(JsonValue root, Patterns& patterns) : root_(root), patterns_(patterns) {}

  std::string problem() {
    auto wrong = problem(root_);
    return budget_.is_spent() ? kTooLong : wrong;
  }

 private:
  std::string problem(JsonValue schema, int depth = 0) {
    if (schema.kind() == Kind::boolean) return {};
    if (!schema.is_object()) return "a schema is an object, true or false";
    if (depth > kDeepestSchema) return "its schemas stand too deep in each other";
    for (Elements each(schema, budget_); each.next();) {
      const auto known = kKeywords.find(each.key());
      if (known == kKeywords.end())
        return fmt::format("{} is not known here; leave it out", printable(each.key()));
      if (auto wrong = problem_of(known->second, each.value(), depth); !wrong.empty())
        return fmt::format("{}: {}", each.key(), wrong);
      if (each.key() == "patternProperties")
        for (Elements pattern(each.value(), budget_); pattern.next();)
          if (auto wrong = problem_with_pattern(pattern.key()); !wrong.empty()) return wrong;
      if (each.key() == "$ref" && !resolve(root_, each.value().string(), budget_))
        return fmt::format("$ref: there is no {} in this schema", printable(each.value().string()));
    }
    return {};
  }

  std::string problem_with_pattern(std::string_view pattern) {
    if (pattern.size() > kMostPattern) return fmt::format("a pattern has at most {} bytes", kMostPattern);
    if (patterns_.contains(pattern)) return {};
    if (patterns_.size() >= kMostPatterns)
      return fmt::format("a schema has at most {} patterns", kMostPatterns);
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_max_mem(kMostPatternMemory);
    auto compiled = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
    if (!compiled->ok()) return fmt::format("the pattern cannot be read: {}", compiled->error());
    patterns_.emplace(pattern, std::move(compiled));
    return {};
  }

  std::string problem_of_each(JsonValue container, int depth) {
    for (Elements each(container, budget_); each.next();)
      if (auto wrong = problem(each.value(), depth + 1); !wrong.empty()) return wrong;
    return {};
  }

  std::string problem_of(Expects expects, JsonValue value, int depth) {
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
        for (Elements each(value, budget_); each.next();)
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
        for (Elements each(value, budget_); each.next();)
          if (!is_type_name(each.value())) return "expected a list of types";
        return {};
    }
    return {};
  }

  const JsonValue root_;
  Patterns& patterns_;
  Budget budget_;
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

int64_t characters_in(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

class Validator {
 public:
  Validator(JsonValue root, const Patterns& patterns) : root_(root), patterns_(patterns) {}

  // Also where what takes too long is inside a "not", and would have passed.
  std::string check(JsonValue value) {
    auto wrong = validate(root_, value, "");
    return too_deep_ || budget_.is_spent() ? kTooLong : wrong;
  }

 private:
  std::string validate(JsonValue schema, JsonValue value, const std::string& path, int depth = 0) {
    too_deep_ = too_deep_ || depth > 2 * kDeepestSchema;
    if (too_deep_ || !budget_.spend(kStepsOfSchema)) return kTooLong;
    if (schema.kind() == Kind::boolean) return schema.boolean() ? "" : at(path, "is not allowed");
    for (Elements each(schema, budget_); each.next();)
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
      return canonical_text(other) == text;
    };
    const auto matches = [&](JsonValue other) { return validate(other, value, path, depth + 1).empty(); };
    if (keyword == "$ref") {
      const auto target = resolve(root_, asked.string(), budget_);
      return target ? validate(*target, value, path, depth + 1) : at(path, "its schema is not there");
    }
    if (keyword == "allOf") {
      for (Elements each(asked, budget_); each.next();)
        if (auto wrong = validate(each.value(), value, path, depth + 1); !wrong.empty()) return wrong;
      return {};
    }
    if (keyword == "anyOf" || keyword == "oneOf") {
      int count = 0;
      for (Elements each(asked, budget_); each.next();) count += matches(each.value());
      if (count == 0) return at(path, "is none of what it may be");
      return count > 1 && keyword == "oneOf" ? at(path, "is several of what it may be one of") : "";
    }
    if (keyword == "not") return matches(asked) ? at(path, "is what it must not be") : "";
    if (keyword == "if") {
      const auto next = schema_member(schema, matches(asked) ? "then" : "else", budget_);
      return next ? validate(*next, value, path, depth + 1) : "";
    }
    if (keyword == "type") {
      bool fits = asked.kind() == Kind::string && has_type(value, asked.string());
      std::string expected(asked.kind() == Kind::string ? asked.string() : "");
      if (asked.kind() == Kind::array)
        for (Elements each(asked, budget_); each.next();) {
          fits = fits || has_type(value, each.value().string());
          expected.append(expected.empty() ? "" : " or ").append(each.value().string());
        }
      return fits ? "" : at(path, "expected " + expected);
    }
    if (keyword == "const")
      return equals_text(value, canonical_text(asked)) ? "" : at(path, "is not what it must be");
    if (keyword == "enum") {
      const auto text = canonical_text(value);
      for (Elements each(asked, budget_); each.next();)
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
    budget_.spend(text.size() / kBytesInStep);
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
    const auto count = elements_in(array);
    if (keyword == "minItems" && count < asked.integer())
      return at(path, fmt::format("has less than {} elements", asked.integer()));
    if (keyword == "maxItems" && count > asked.integer())
      return at(path, fmt::format("has more than {} elements", asked.integer()));
    if (keyword == "uniqueItems" && asked.boolean()) {
      std::set<std::string> seen;
      for (Elements each(array, budget_); each.next();) {
        if (!seen.insert(canonical_text(each.value())).second) return at(path, "has an element twice");
      }
    }
    if (keyword == "contains") {
      const auto least = schema_member(schema, "minContains", budget_),
                 most = schema_member(schema, "maxContains", budget_);
      int64_t found = 0;
      for (Elements each(array, budget_); each.next();)
        found += validate(asked, each.value(), path, depth + 1).empty();
      if (found < (least ? least->integer() : 1))
        return at(path, "has too few elements of the kind that it must have");
      if (most && found > most->integer()) return at(path, "has too many elements of a kind");
    }
    if (keyword != "items" && keyword != "prefixItems") return {};
    // Those of the prefix have schemas of their own; the others share one.
    const auto prefix =
        keyword == "prefixItems" ? std::optional(asked) : schema_member(schema, "prefixItems", budget_);
    std::vector<JsonValue> own;
    if (prefix)
      for (Elements each(*prefix, budget_); each.next();) own.push_back(each.value());
    size_t index = 0;
    for (Elements each(array, budget_); each.next(); ++index) {
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
    if (keyword == "minProperties" && elements_in(object) < asked.integer())
      return at(path, fmt::format("has less than {} members", asked.integer()));
    if (keyword == "maxProperties" && elements_in(object) > asked.integer())
      return at(path, fmt::format("has more than {} members", asked.integer()));
    if (keyword == "required") {
      for (Elements each(asked, budget_); each.next();)
        if (!schema_member(object, each.value().string(), budget_))
          return at(below(path, each.value().string()), "is missing");
    }
    if (keyword == "propertyNames") {
      for (Elements each(object, budget_); each.next();) {
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
    const auto properties = schema_member(schema, "properties", budget_);
    const auto patterns = schema_member(schema, "patternProperties", budget_);
    for (Elements each(object, budget_); each.next();) {
      const auto own = properties ? schema_member(*properties, each.key(), budget_) : std::nullopt;
      bool known = own.has_value();
      const auto check = [&](JsonValue other) {
        return validate(other, each.value(), below(path, each.key()), depth + 1);
      };
      if (keyword == "properties" && own)
        if (auto wrong = check(*own); !wrong.empty()) return wrong;
      if (patterns && keyword != "properties")
        for (Elements pattern(*patterns, budget_); pattern.next();) {
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
    const auto found = patterns_.find(pattern);
    if (found == patterns_.end()) return false;
    const auto states = static_cast<size_t>(found->second->ProgramSize());
    const bool may = budget_.spend(1 + text.size() * (1 + states / kStatesInStep) / kBytesInStep);
    return may && re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *found->second);
  }

  int64_t elements_in(JsonValue container) {
    int64_t count = 0;
    for (Elements each(container, budget_); each.next();) ++count;
    return count;
  }

  std::string canonical_text(JsonValue value) {
    auto text = canonical(value);
    budget_.spend(text.size() / kBytesInStep);
    return text;
  }

  const JsonValue root_;
  const Patterns& patterns_;
  Budget budget_;
  bool too_deep_ = false;
};

}  // namespace

struct Schema::Parts {
  JsonDocument document;
  JsonValue root;
  Patterns patterns;
};

Schema::Schema(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Schema::~Schema() = default;

Checked<std::shared_ptr<const Schema>> Schema::read(std::string_view json) {
  if (json.size() > kMostSchema) return invalid(fmt::format("at most {} bytes", kMostSchema));
  auto parts = std::make_unique<Parts>();
  const auto root = parts->document.parse(json);
  if (!root || !root->is_object()) return invalid("expected a JSON Schema, an object");
  parts->root = *root;
  if (auto problem = SchemaCheck(*root, parts->patterns).problem(); !problem.empty())
    return invalid(std::move(problem));
  return std::shared_ptr<const Schema>(new Schema(std::move(parts)));
}

std::string Schema::mismatch(JsonValue value) const {
  return Validator(parts_->root, parts_->patterns).check(value);
}

}  // namespace tabella::inbox

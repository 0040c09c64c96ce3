// Reads a request's members out of its JSON, and collects what is wrong with them as AWS does: a member of
// the wrong JSON type ends it at once; broken constraints are gathered into one message; rules about
// attribute values come last.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "item/attribute_json.h"
#include "protocol/names.h"
#include "wire/error.h"

namespace tabella::wire {

// What has been found wrong in one request so far.
class Problems {
 public:
  void serialization(std::string message);
  void violation(std::string path, std::string value, std::string constraint);
  void first(std::string message);  // comes before all violations
  void late(std::string message);   // comes after them
  void add(item::JsonFault fault);

  Result<> result() const;

 private:
  std::optional<std::string> serialization_;
  std::optional<std::string> first_;
  std::vector<std::string> violations_;
  std::optional<std::string> late_;
};

// One JSON object, whose members are read by name. `path` is its place in the request, for messages.
class Reader {
 public:
  Reader(JsonValue object, Problems& problems, std::string path = {})
      : object_(object), problems_(problems), path_(std::move(path)) {}

  Problems& problems() const { return problems_; }
  std::string path_of(std::string_view member) const;

  std::optional<std::string> string(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name, std::string_view type = "Integer") const;
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<JsonValue> list(std::string_view name) const;
  std::optional<JsonValue> map(std::string_view name, std::string_view value_type) const;
  std::optional<JsonValue> structure(std::string_view name, std::string_view type) const;
  std::optional<item::Item> item(std::string_view name) const;
  std::optional<std::vector<std::string>> strings(std::string_view name) const;

  template <class E>
  std::optional<E> choice(std::string_view name, protocol::EnumNames<E> names) const {
    const auto text = string(name);
    if (!text) return std::nullopt;
    std::string all;
    for (const auto& [n, value] : names) {
      if (n == *text) return value;
      if (!all.empty()) all.append(", ");
      all.append(n);
    }
    violation(name, *text, "Member must satisfy enum value set: [" + all + "]");
    return std::nullopt;
  }

  // Parameters that AWS knows and we do not: refused by name, so that nobody takes them for granted. What AWS
  // does not know either is passed over, as AWS does.
  void unsupported(std::initializer_list<std::string_view> members) const;

  // Constraints. Each leaves its complaint, if it has one.
  void violation(std::string_view member, std::string_view value, std::string_view constraint) const;
  void missing(std::string_view member) const;
  template <class T>
  bool require(std::string_view member, const std::optional<T>& value) const {
    if (!value) missing(member);
    return value.has_value();
  }
  void at_least(std::string_view member, const std::optional<int64_t>& value, int64_t least) const;
  void at_most(std::string_view member, const std::optional<int64_t>& value, int64_t most) const;
  void length(std::string_view member, const std::optional<std::string>& value, size_t least,
              size_t most) const;
  void pattern(std::string_view member, const std::optional<std::string>& value) const;  // [a-zA-Z0-9_.-]+
  void count(std::string_view member, const std::optional<JsonValue>& list, std::string_view shown,
             size_t least, size_t most) const;

 private:
  std::optional<JsonValue> find(std::string_view name) const { return object_.find(name); }

  JsonValue object_;
  Problems& problems_;
  std::string path_;
};

// What AWS says of a scalar where a collection in a collection should have been.
inline constexpr std::string_view kNotAMap =
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module "
    "java.base of "
    "loader 'bootstrap')";

// What AWS says of a value that should have been a scalar of the given Java type.
std::string not_a(std::string_view type, JsonValue value);

bool matches_name_pattern(std::string_view text);
size_t size_of(JsonValue container);

// An element of a list or map that must be an object.
bool is_structure(JsonValue value, std::string_view type, Problems& problems);

}  // namespace tabella::wire

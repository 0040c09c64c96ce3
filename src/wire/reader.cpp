#include "wire/reader.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::wire {
namespace {

constexpr std::string_view kNamePattern = "[a-zA-Z0-9_.-]+";
constexpr std::string_view kNoStructure = "Start of structure or map found where not expected";
constexpr size_t kMaxViolations = 10;

std::string lower_first(std::string_view name) {
  std::string out(name);
  if (!out.empty() && out[0] >= 'A' && out[0] <= 'Z') out[0] = static_cast<char>(out[0] + 32);
  return out;
}

std::string_view token_of(JsonValue value) {
  switch (value.kind()) {
    case JsonValue::Kind::boolean: return value.boolean() ? "TRUE_VALUE" : "FALSE_VALUE";
    case JsonValue::Kind::integer: return "NUMBER_VALUE";
    case JsonValue::Kind::real: return "DECIMAL_VALUE";
    case JsonValue::Kind::string: return "STRING_VALUE";
    case JsonValue::Kind::null:
    case JsonValue::Kind::array:
    case JsonValue::Kind::object: break;
  }
  return "NULL_VALUE";
}

std::string full_type(std::string_view type) {
  if (type.find('.') != std::string_view::npos) return std::string(type);
  return fmt::format("com.amazonaws.dynamodb.v20120810.{}", type);
}

}  // namespace

std::string not_a(std::string_view type, JsonValue value) {
  if (value.kind() == JsonValue::Kind::array)
    return fmt::format("Unrecognized collection type class java.lang.{}", type);
  if (value.kind() == JsonValue::Kind::object) return std::string(kNoStructure);
  return fmt::format("{} cannot be converted to {}", token_of(value), type);
}

void Problems::serialization(std::string message) {
  if (!serialization_) serialization_ = std::move(message);
}

void Problems::violation(std::string path, std::string value, std::string constraint) {
  if (violations_.size() < kMaxViolations)
    violations_.push_back(
        fmt::format("Value {} at '{}' failed to satisfy constraint: {}", value, path, constraint));
}

void Problems::first(std::string message) {
  if (!first_) first_ = std::move(message);
}

void Problems::late(std::string message) {
  if (!late_) late_ = std::move(message);
}

void Problems::add(item::JsonFault fault) {
  if (fault.kind == item::JsonFault::Kind::serialization)
    serialization(std::move(fault.message));
  else
    late(std::move(fault.message));
}

Result<> Problems::result() const {
  if (serialization_) return std::unexpected(serialization_error(serialization_));
  if (first_) return std::unexpected(validation_error(*first_));
  if (!violations_.empty()) {
    std::string all;
    for (const auto& violation : violations_) {
      if (!all.empty()) all.append("; ");
      all.append(violation);
    }
    return std::unexpected(validation_error(fmt::format(
        "{} validation error{} detected: {}", violations_.size(), violations_.size() > 1 ? "s" : "", all)));
  }
  if (late_) return std::unexpected(validation_error(*late_));
  return {};
}

std::string Reader::path_of(std::string_view member) const {
  return path_.empty() ? lower_first(member) : fmt::format("{}.{}", path_, lower_first(member));
}

std::optional<std::string> Reader::string(std::string_view name) const {
  const auto value = find(name);
  if (!value) return std::nullopt;
  if (value->kind() == JsonValue::Kind::string) return std::string(value->string());
  problems_.serialization(not_a("String", *value));
  return std::nullopt;
}

std::optional<int64_t> Reader::integer(std::string_view name, std::string_view type) const {
  const auto value = find(name);
  if (!value) return std::nullopt;
  if (value->kind() == JsonValue::Kind::integer || value->kind() == JsonValue::Kind::real)
    return value->integer();
  problems_.serialization(not_a(type, *value));
  return std::nullopt;
}

std::optional<bool> Reader::boolean(std::string_view name) const {
  const auto value = find(name);
  if (!value) return std::nullopt;
  if (value->kind() == JsonValue::Kind::boolean) return value->boolean();
  if (value->kind() == JsonValue::Kind::string) {
    const auto word = boolean_word(value->string());
    if (!word) problems_.serialization("Unexpected token received from parser");
    return word;
  }
  problems_.serialization(not_a("Boolean", *value));
  return std::nullopt;
}

std::optional<JsonValue> Reader::list(std::string_view name) const {
  const auto value = find(name);
  if (!value || value->kind() == JsonValue::Kind::array) return value;
  problems_.serialization(value->kind() == JsonValue::Kind::object ? std::string(kNoStructure)
                                                                   : "Unexpected field type");
  return std::nullopt;
}

std::optional<JsonValue> Reader::map(std::string_view name, std::string_view value_type) const {
  const auto value = find(name);
  if (!value || value->kind() == JsonValue::Kind::object) return value;
  problems_.serialization(
      value->kind() == JsonValue::Kind::array
          ? fmt::format("Unrecognized collection type java.util.Map<java.lang.String, {}>",
                        full_type(value_type))
          : "Unexpected field type");
  return std::nullopt;
}

std::optional<JsonValue> Reader::structure(std::string_view name, std::string_view type) const {
  const auto value = find(name);
  if (!value || value->kind() == JsonValue::Kind::object) return value;
  problems_.serialization(value->kind() == JsonValue::Kind::array
                              ? fmt::format("Unrecognized collection type class {}", full_type(type))
                              : "Unexpected field type");
  return std::nullopt;
}

std::optional<item::Item> Reader::item(std::string_view name) const {
  const auto value = find(name);
  if (!value) return std::nullopt;
  auto read = item::read_item(*value);
  if (read) return std::move(*read);
  problems_.add(std::move(read).error());
  return item::Item();  // present, if faulty
}

std::optional<std::vector<std::string>> Reader::strings(std::string_view name) const {
  const auto value = list(name);
  if (!value) return std::nullopt;
  std::vector<std::string> out;
  for (JsonElements e(*value); e.next();) {
    if (e.value().kind() == JsonValue::Kind::string)
      out.emplace_back(e.value().string());
    else if (e.value().kind() != JsonValue::Kind::null)
      problems_.serialization(not_a("String", e.value()));
  }
  return out;
}

void Reader::unsupported(std::initializer_list<std::string_view> members) const {
  for (const auto member : members)
    if (find(member))
      problems_.first(fmt::format("One or more parameter values were invalid: {} is not supported", member));
}

void Reader::violation(std::string_view member, std::string_view value, std::string_view constraint) const {
  problems_.violation(path_of(member), fmt::format("'{}'", value), std::string(constraint));
}

void Reader::missing(std::string_view member) const {
  problems_.violation(path_of(member), "null", "Member must not be null");
}

void Reader::at_least(std::string_view member, const std::optional<int64_t>& value, int64_t least) const {
  if (value && *value < least)
    violation(member, std::to_string(*value),
              fmt::format("Member must have value greater than or equal to {}", least));
}

void Reader::at_most(std::string_view member, const std::optional<int64_t>& value, int64_t most) const {
  if (value && *value > most)
    violation(member, std::to_string(*value),
              fmt::format("Member must have value less than or equal to {}", most));
}

void Reader::length(std::string_view member, const std::optional<std::string>& value, size_t least,
                    size_t most) const {
  if (!value) return;
  if (value->size() < least)
    violation(member, *value, fmt::format("Member must have length greater than or equal to {}", least));
  if (value->size() > most)
    violation(member, *value, fmt::format("Member must have length less than or equal to {}", most));
}

void Reader::pattern(std::string_view member, const std::optional<std::string>& value) const {
  if (value && !matches_name_pattern(*value))
    violation(member, *value,
              fmt::format("Member must satisfy regular expression pattern: {}", kNamePattern));
}

void Reader::count(std::string_view member, const std::optional<JsonValue>& list, std::string_view shown,
                   size_t least, size_t most) const {
  if (!list) return;
  const size_t n = size_of(*list);
  if (n < least)
    violation(member, "[]", fmt::format("Member must have length greater than or equal to {}", least));
  if (n > most)
    violation(member, shown, fmt::format("Member must have length less than or equal to {}", most));
}

bool matches_name_pattern(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

size_t size_of(JsonValue container) {
  size_t n = 0;
  for (JsonElements e(container); e.next();) ++n;
  return n;
}

bool is_structure(JsonValue value, std::string_view type, Problems& problems) {
  if (value.kind() == JsonValue::Kind::object) return true;
  problems.serialization(value.kind() == JsonValue::Kind::array
                             ? fmt::format("Unrecognized collection type class {}", full_type(type))
                             : "Unexpected value type in payload");
  return false;
}

}  // namespace tabella::wire

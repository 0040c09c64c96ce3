#include "base/json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/json_problem.h"

namespace tabella {
namespace {

namespace dom = simdjson::dom;

// A JsonValue is a dom::element without its name: the document and a place on its tape.
static_assert(sizeof(dom::element) == 2 * sizeof(void*));

template <class T>
T as(const void* document, size_t index) {
  struct Raw {
    const void* document;
    size_t index;
  };
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == sizeof(Raw));
  return std::bit_cast<T>(Raw{document, index});
}

struct Place {
  const void* document;
  size_t index;
};

template <class T>
Place place_of(T t) {
  return std::bit_cast<Place>(t);
}

constexpr size_t kMaxDepth = 512;
constexpr size_t kKeptCapacity = 1u << 20;

}  // namespace

struct JsonDocument::Parser {
  dom::parser parser;
};

JsonDocument::JsonDocument() : parser_(std::make_unique<Parser>()) {}
JsonDocument::~JsonDocument() = default;

std::optional<JsonValue> JsonDocument::parse(std::string_view text) {
  if (text.empty()) return std::nullopt;
  // What one large document needed is not kept for the small ones after it.
  if (parser_->parser.capacity() > kKeptCapacity && text.size() <= kKeptCapacity)
    parser_ = std::make_unique<Parser>();
  if (parser_->parser.max_depth() != kMaxDepth && parser_->parser.allocate(text.size() + 64, kMaxDepth))
    return {};
  const auto result = parser_->parser.parse(text.data(), text.size());
  if (result.error()) return std::nullopt;
  const auto place = place_of(result.value_unsafe());
  JsonValue value;
  value.document_ = place.document;
  value.index_ = place.index;
  return value;
}

std::string_view json_problem(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "it is empty";
  dom::parser parser;
  auto error = parser.allocate(text.size() + 64, kMaxDepth);
  if (!error) error = parser.parse(text.data(), text.size()).error();
  switch (error) {
    case simdjson::SUCCESS: return "";
    case simdjson::UTF8_ERROR: return "it is not UTF-8";
    case simdjson::DEPTH_ERROR: return "it is nested too deep, more than 500 levels";
    case simdjson::UNCLOSED_STRING:
    case simdjson::STRING_ERROR: return "a text in it has no end, or has what must be escaped";
    case simdjson::NUMBER_ERROR:
      return "a number in it is malformed or too large: integers are from -2^63 to 2^64-1, others below "
             "1.8e308";
    default: return "it is no JSON";
  }
}

JsonValue::Kind JsonValue::kind() const {
  switch (as<dom::element>(document_, index_).type()) {
    case dom::element_type::ARRAY: return Kind::array;
    case dom::element_type::OBJECT: return Kind::object;
    case dom::element_type::INT64:
    case dom::element_type::UINT64: return Kind::integer;
    case dom::element_type::DOUBLE: return Kind::real;
    case dom::element_type::STRING: return Kind::string;
    case dom::element_type::BOOL: return Kind::boolean;
    case dom::element_type::NULL_VALUE: return Kind::null;
  }
  return Kind::null;
}

bool JsonValue::boolean() const { return as<dom::element>(document_, index_).get_bool().value_unsafe(); }

int64_t JsonValue::integer() const {
  const auto element = as<dom::element>(document_, index_);
  if (int64_t value = 0; !element.get(value)) return value;
  if (uint64_t value = 0; !element.get(value)) return std::numeric_limits<int64_t>::max();
  double value = 0;
  if (element.get(value)) return 0;
  constexpr double kLimit = 9.2e18;
  return static_cast<int64_t>(std::clamp(std::floor(value), -kLimit, kLimit));
}

double JsonValue::real() const {
  double value = 0;
  return as<dom::element>(document_, index_).get(value) ? static_cast<double>(integer()) : value;
}

std::string JsonValue::number_text() const {
  const auto element = as<dom::element>(document_, index_);
  if (int64_t value = 0; !element.get(value)) return std::to_string(value);
  if (uint64_t value = 0; !element.get(value)) return std::to_string(value);
  double value = 0;
  if (element.get(value)) return "";
  const bool fixed = value == 0 || (std::abs(value) >= 1e-6 && std::abs(value) < 1e21);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value == 0 ? 0 : value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return {buffer, end.ptr};
}

std::string_view JsonValue::string() const {
  return as<dom::element>(document_, index_).get_string().value_unsafe();
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  dom::object object;
  if (as<dom::element>(document_, index_).get(object)) return std::nullopt;
  dom::element found;
  if (object.at_key(key).get(found) || found.is_null()) return std::nullopt;
  const auto place = place_of(found);
  JsonValue value;
  value.document_ = place.document;
  value.index_ = place.index;
  return value;
}

std::string_view JsonValue::text(std::string_view key) const {
  const auto value = find(key);
  return value && value->kind() == Kind::string ? value->string() : std::string_view();
}

JsonElements::JsonElements(JsonValue container) : object_(container.kind() == JsonValue::Kind::object) {
  const auto element = as<dom::element>(container.document_, container.index_);
  const auto set = [](JsonValue& value, Place place) {
    value.document_ = place.document;
    value.index_ = place.index;
  };
  if (object_) {
    const dom::object object = element.get_object().value_unsafe();
    set(at_, place_of(object.begin()));
    set(end_, place_of(object.end()));
  } else {
    const dom::array array = element.get_array().value_unsafe();
    set(at_, place_of(array.begin()));
    set(end_, place_of(array.end()));
  }
}

bool JsonElements::next() {
  if (object_) {
    auto at = as<dom::object::iterator>(at_.document_, at_.index_);
    if (started_) ++at;
    at_.index_ = place_of(at).index;
    if (at_.index_ == end_.index_) return false;
    key_ = at.key();
    const auto place = place_of(at.value());
    value_.document_ = place.document;
    value_.index_ = place.index;
  } else {
    auto at = as<dom::array::iterator>(at_.document_, at_.index_);
    if (started_) ++at;
    at_.index_ = place_of(at).index;
    if (at_.index_ == end_.index_) return false;
    const auto place = place_of(*at);
    value_.document_ = place.document;
    value_.index_ = place.index;
  }
  started_ = true;
  return true;
}

void append_json(std::string& out, JsonValue value) {
  switch (value.kind()) {
    case JsonValue::Kind::null: out += "null"; return;
    case JsonValue::Kind::boolean: out += value.boolean() ? "true" : "false"; return;
    case JsonValue::Kind::integer: out += value.number_text(); return;
    case JsonValue::Kind::real: fmt::format_to(std::back_inserter(out), "{}", value.real()); return;
    case JsonValue::Kind::string: append_json_string(out, value.string()); return;
    case JsonValue::Kind::array: {
      JsonArrayWriter array(out);
      for (JsonElements each(value); each.next();) append_json(array.element(), each.value());
      return;
    }
    case JsonValue::Kind::object: {
      JsonObjectWriter object(out);
      for (JsonElements each(value); each.next();) append_json(object.key(each.key()), each.value());
      return;
    }
  }
}

std::optional<bool> boolean_word(std::string_view word) {
  std::string lower(word);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (lower == "true" || lower == "yes" || lower == "1") return true;
  if (lower == "false" || lower == "no" || lower == "0") return false;
  return std::nullopt;
}

std::string& JsonObjectWriter::key(std::string_view name) {
  if (!first_) out_.push_back(',');
  first_ = false;
  append_json_string(out_, name);
  out_.push_back(':');
  return out_;
}

void JsonObjectWriter::number(std::string_view name, double value) {
  fmt::format_to(std::back_inserter(key(name)), "{:.15}", value);
}

}  // namespace tabella

// JSON, read and written. Reading is simdjson's, kept out of this header; the values borrow from the
// document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_text.h"

namespace tabella {

class JsonValue {
 public:
  enum class Kind { null, boolean, integer, real, string, array, object };

  Kind kind() const;
  bool boolean() const;
  int64_t integer() const;          // of an integer or a real, rounded down; saturates
  double real() const;              // of an integer or a real
  std::string number_text() const;  // of an integer or a real, as JavaScript writes it: 1.50 is 1.5
  std::string_view string() const;
  std::optional<JsonValue> find(std::string_view key) const;  // of an object; a null counts as absent
  std::string_view text(std::string_view key) const;          // of an object; empty: it has no such string

  bool is_object() const { return kind() == Kind::object; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }

 private:
  friend class JsonDocument;
  friend class JsonElements;
  const void* document_ = nullptr;
  size_t index_ = 0;
};

// Walks an array or an object.
class JsonElements {
 public:
  explicit JsonElements(JsonValue container);
  bool next();
  std::string_view key() const { return key_; }  // object
  JsonValue value() const { return value_; }

 private:
  bool object_;
  bool started_ = false;
  JsonValue at_;
  JsonValue end_;
  std::string_view key_;
  JsonValue value_;
};

// A parser and the last document it read. Keep one per thread: it reuses its memory.
class JsonDocument {
 public:
  JsonDocument();
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // nullopt if `text` is not one valid JSON value in valid UTF-8. Valid until the next parse.
  std::optional<JsonValue> parse(std::string_view text);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// A value as text again, without blanks.
void append_json(std::string& out, JsonValue value);

// AWS takes the words true, yes, 1 and false, no, 0 for booleans, in any case.
std::optional<bool> boolean_word(std::string_view word);

// Writes one JSON object, member by member.
class JsonObjectWriter {
 public:
  explicit JsonObjectWriter(std::string& out) : out_(out) { out_.push_back('{'); }
  ~JsonObjectWriter() { out_.push_back('}'); }
  JsonObjectWriter(const JsonObjectWriter&) = delete;
  JsonObjectWriter& operator=(const JsonObjectWriter&) = delete;

  // Writes the key; the caller appends the value to what is returned.
  std::string& key(std::string_view name);
  void string(std::string_view name, std::string_view value) { append_json_string(key(name), value); }
  void number(std::string_view name, int64_t value) { key(name).append(std::to_string(value)); }
  void number(std::string_view name, double value);
  void boolean(std::string_view name, bool value) { key(name).append(value ? "true" : "false"); }

 private:
  std::string& out_;
  bool first_ = true;
};

// Writes the comma-separated elements of one JSON array.
class JsonArrayWriter {
 public:
  explicit JsonArrayWriter(std::string& out) : out_(out) { out_.push_back('['); }
  ~JsonArrayWriter() { out_.push_back(']'); }
  JsonArrayWriter(const JsonArrayWriter&) = delete;
  JsonArrayWriter& operator=(const JsonArrayWriter&) = delete;

  std::string& element() {
    if (!first_) out_.push_back(',');
    first_ = false;
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace tabella

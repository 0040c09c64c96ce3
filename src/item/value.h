// DynamoDB's attribute values, in two forms.
//
// ValueView and ItemView look at the flat binary form (docs/storage_format.md, "Values"; do not change): what
// is on disk, what requests are read into and what answers are rendered from. Nothing is built to look at it.
//
// Value is the same as a tree, for code that builds or changes values: update expressions, the systems.
//
// Views borrow: the bytes must outlive them. All of it is plain data; share it between threads as such.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tabella::item {

enum class Type : uint8_t { S = 1, N, B, SS, NS, BS, BOOL, NUL, L, M };

// "S", "N", … as in JSON.
std::string_view type_name(Type type);
std::optional<Type> type_from_name(std::string_view name);

inline bool is_set(Type type) { return type == Type::SS || type == Type::NS || type == Type::BS; }
inline bool is_scalar_key(Type type) { return type == Type::S || type == Type::N || type == Type::B; }

class ValueView {
 public:
  ValueView() = default;
  explicit ValueView(std::string_view bytes) : bytes_(bytes) {}

  Type type() const;
  std::string_view bytes() const { return bytes_; }

  // S and B: the content; N: the encoded number (item/number.h).
  std::string_view content() const;
  bool boolean() const;
  // How many elements a set, list or map has.
  size_t count() const;

  // The bytes it counts for in an item's size.
  size_t size() const;

  std::optional<ValueView> member(std::string_view name) const;  // of a map
  std::optional<ValueView> element(size_t index) const;          // of a list

 private:
  std::string_view bytes_;
};

// Walks the elements of a set (as contents), a list or a map.
class Elements {
 public:
  explicit Elements(ValueView container);
  bool next();
  std::string_view name() const { return name_; }        // map
  std::string_view content() const { return content_; }  // set
  ValueView value() const { return value_; }             // list, map

 private:
  Type type_;
  std::string_view rest_;
  size_t left_;
  std::string_view name_;
  std::string_view content_;
  ValueView value_;
};

// A set's elements as DynamoDB returns them: strings and binaries by their bytes, numbers by value, which is
// the order of their bytes too. Sets are written in this order; those that older stores hold may not be.
std::vector<std::string_view> ordered_contents(ValueView set);

// Sets compare by membership, numbers by value, lists and maps by their elements.
bool equal(ValueView a, ValueView b);

// <0, 0, >0 for two S, two N or two B; nullopt for anything else: there is no order.
std::optional<int> compare(ValueView a, ValueView b);

// DynamoDB's limit on how deep lists and maps may stand in each other, and what it says beyond. The item is
// one of its 32 levels.
inline constexpr int kMaxNesting = 31;
inline constexpr const char* kTooDeep =
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond "
    "supported limit";
// 0 for scalars and sets, 1 for a list or map of those, and so on.
int nesting(ValueView value);

class ItemView {
 public:
  ItemView() = default;
  explicit ItemView(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes() const { return bytes_; }
  size_t count() const;
  size_t size() const;  // as DynamoDB counts it
  std::optional<ValueView> find(std::string_view name) const;

 private:
  std::string_view bytes_;
};

// Whether the items have the same attributes, in whatever order.
bool equal(ItemView a, ItemView b);

// Appends bytes that equal items share, in whatever order their attributes, members and set elements stand.
void append_canonical(std::string& out, ItemView item);

// Walks an item's attributes.
class Attributes {
 public:
  explicit Attributes(ItemView item);
  bool next();
  std::string_view name() const { return name_; }
  ValueView value() const { return value_; }

 private:
  std::string_view rest_;
  size_t left_;
  std::string_view name_;
  ValueView value_;
};

// An item that owns its bytes.
class Item {
 public:
  Item();
  explicit Item(std::string bytes) : bytes_(std::move(bytes)) {}
  operator ItemView() const { return ItemView(bytes_); }  // NOLINT: an item is viewed wherever one is read
  ItemView view() const { return ItemView(bytes_); }
  const std::string& bytes() const { return bytes_; }
  std::optional<ValueView> find(std::string_view name) const { return view().find(name); }
  size_t count() const { return view().count(); }
  size_t size() const { return view().size(); }

 private:
  std::string bytes_;
};

// Puts an item together from flat values.
class ItemBuilder {
 public:
  void add(std::string_view name, ValueView value);
  // The value that `append(std::string&)` appends.
  template <class Append>
  void add_with(std::string_view name, Append append) {
    start(name);
    const size_t begin = entries_.size();
    append(entries_);
    size_ += ValueView(std::string_view(entries_).substr(begin)).size();
  }
  Item finish() const;

 private:
  void start(std::string_view name);

  size_t count_ = 0;
  size_t size_ = 0;
  std::string entries_;
};

class Value {
 public:
  static Value string(std::string text) { return {Type::S, std::move(text)}; }
  static Value binary(std::string bytes) { return {Type::B, std::move(bytes)}; }
  static Value number(std::string encoded) { return {Type::N, std::move(encoded)}; }
  static Value integer(int64_t value);
  static Value boolean(bool value) { return {Type::BOOL, value ? "1" : ""}; }
  static Value null() { return {Type::NUL, {}}; }
  static Value list(std::vector<Value> values);
  static Value map();
  static Value set(Type type, std::vector<std::string> contents);
  static Value decode(ValueView view);

  Type type() const { return type_; }
  const std::string& content() const { return content_; }
  const std::vector<std::string>& contents() const { return names_; }
  std::vector<std::string>& contents() { return names_; }
  std::vector<Value>& elements() { return values_; }
  const std::vector<Value>& elements() const { return values_; }

  Value* member(std::string_view name);
  void set_member(std::string_view name, Value value);
  void remove_member(std::string_view name);

  void append_to(std::string& out) const;  // the flat form

 private:
  Value(Type type, std::string content) : type_(type), content_(std::move(content)) {}

  friend Value decode_item(ItemView item);

  Type type_;
  std::string content_;             // S, B, N; BOOL: empty is false
  std::vector<std::string> names_;  // a set's contents, a map's names
  std::vector<Value> values_;       // a list's elements, a map's values
};

// The flat form of a value, owning its bytes.
std::string encode(const Value& value);

// An item as a tree that can be changed: a map.
Value decode_item(ItemView item);
Item encode_item(const Value& map_value);

// Encoders for values that are read straight into the flat form.
void append_scalar(std::string& out, Type type, std::string_view content);
void append_boolean(std::string& out, bool value);
void append_null(std::string& out);

// Writes a container whose elements the caller appends between construction and finish().
class ContainerEncoder {
 public:
  ContainerEncoder(std::string& out, Type type) : out_(out), start_(out.size()), type_(type) {}
  void add_content(std::string_view content);  // set
  void start_member(std::string_view name);    // map: append the value next
  void start_element() { ++count_; }           // list: append the value next
  void finish();

 private:
  std::string& out_;
  size_t start_;
  Type type_;
  size_t count_ = 0;
};

}  // namespace tabella::item

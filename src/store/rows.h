// The rows of our own tables, and the requests that read and write them.
//
// Attributes are read by name, and rows, conditions and requests are put together from names and values. The
// text of the expressions is made here, with references for all names and values: no attribute can be a
// reserved word, and none is refused for a reference that is not used.
//
//   store_.put_item(Put(table, Row().set("id", id).set("due", 5)).when(absent("id")));
//   store_.update_item(Update(table, key).set("owner", me).add("attempt",
//   1).remove("end").when(exists("id"))); store_.query(Query(table).partition("kind",
//   "webhook").after("name", last).limit(100));
//
// Requests are made of temporaries, or of std::move(builder). All of it is plain data.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "item/number.h"
#include "item/value.h"
#include "store/requests.h"
#include "store/transactions.h"

namespace tabella::store {

// Reading. Empty, 0 or false where there is no such attribute of that type.
inline std::string text_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::S ? std::string(value->content()) : std::string();
}
inline std::string binary_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::B ? std::string(value->content()) : std::string();
}
inline int64_t number_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::N ? item::number_to_int(value->content()).value_or(0) : 0;
}
inline bool flag_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::BOOL && value->boolean();
}

// The same of a map's members.
inline std::optional<item::ValueView> member_of(item::ValueView map, std::string_view name) {
  return map.type() == item::Type::M ? map.member(name) : std::nullopt;
}
inline std::string text_of(item::ValueView map, std::string_view name) {
  const auto value = member_of(map, name);
  return value && value->type() == item::Type::S ? std::string(value->content()) : std::string();
}
inline int64_t number_of(item::ValueView map, std::string_view name) {
  const auto value = member_of(map, name);
  return value && value->type() == item::Type::N ? item::number_to_int(value->content()).value_or(0) : 0;
}

struct Binary {
  std::string_view bytes;
};

// A value as C++ has it: text is S, a whole number N, a bool BOOL, strings SS, Binary B, and an item::Value
// whatever it is. It refers to what it is made from: a parameter, not to be kept.
class ValueRef {
 public:
  ValueRef(std::string_view text) : type_(item::Type::S), content_(text) {}  // NOLINT
  ValueRef(const std::string& text) : ValueRef(std::string_view(text)) {}    // NOLINT
  ValueRef(const char* text) : ValueRef(std::string_view(text)) {}           // NOLINT
  ValueRef(Binary binary) : type_(item::Type::B), content_(binary.bytes) {}  // NOLINT
  ValueRef(const std::vector<std::string>& strings)                          // NOLINT
      : type_(item::Type::SS), strings_(&strings) {}
  ValueRef(const item::Value& value) : type_(value.type()), value_(&value) {}  // NOLINT
  template <std::integral Number>
  ValueRef(Number number)  // NOLINT
      : type_(std::same_as<Number, bool> ? item::Type::BOOL : item::Type::N),
        number_(static_cast<int64_t>(number)) {}

  void append_to(std::string& out) const;  // the flat form

 private:
  item::Type type_;
  std::string_view content_;
  int64_t number_ = 0;
  const std::vector<std::string>* strings_ = nullptr;
  const item::Value* value_ = nullptr;
};

// An item, attribute by attribute, in the order in which they are set; each of them once.
class Row {
 public:
  Row& set(std::string_view name, ValueRef value) {
    return set_with(name, [&](std::string& out) { value.append_to(out); });
  }
  // To the flat form that `append(std::string&)` appends.
  template <class Append>
  Row& set_with(std::string_view name, Append append) {
    builder_.add_with(name, append);
    return *this;
  }
  operator Item() const { return builder_.finish(); }  // NOLINT: a row is an item that is being made

 private:
  item::ItemBuilder builder_;
};

// What is asked of an item, about its attributes by name.
class Condition {
 public:
  // Each "#" of the text stands for the next name, each ":" for the next value.
  Condition(std::string text, std::initializer_list<std::string_view> names,
            std::initializer_list<ValueRef> values);
  friend Condition operator&&(Condition a, Condition b);
  friend Condition operator||(Condition a, Condition b);

 private:
  friend class References;
  std::string text_;
  std::vector<std::string> names_;
  std::vector<std::string> values_;  // in the flat form
};

Condition exists(std::string_view name);
Condition absent(std::string_view name);
Condition equals(std::string_view name, ValueRef value);
Condition differs(std::string_view name, ValueRef value);
Condition less(std::string_view name, ValueRef value);
Condition at_most(std::string_view name, ValueRef value);
Condition greater(std::string_view name, ValueRef value);
Condition at_least(std::string_view name, ValueRef value);
Condition begins_with(std::string_view name, ValueRef value);
Condition between(std::string_view name, ValueRef least, ValueRef most);

// The names and values that the expressions of a request refer to.
class References {
 public:
  std::string name(std::string_view attribute);  // "#n0"; the same for the same attribute
  std::string value(ValueRef value);             // ":v0"
  std::string text(const Condition& condition);
  std::string list(const std::vector<std::string>& attributes);
  ExpressionAttributes attributes() &&;

 private:
  template <class Append>
  std::string value_with(Append append);

  Names names_;
  size_t count_ = 0;
  item::ItemBuilder values_;
};

// What Put, Update, Delete and Check have in common.
class WriteBuilder {
 public:
  // All of the conditions, where there are several.
  template <class Self>
  Self&& when(this Self&& self, const Condition& condition) {
    self.add_condition(condition);
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& returning(this Self&& self, ReturnValues values) {
    self.options_.return_values = values;
    return std::forward<Self>(self);
  }
  // The error of a condition that fails has the item that it failed on.
  template <class Self>
  Self&& return_old_on_failure(this Self&& self) {
    self.options_.return_old_on_failure = true;
    return std::forward<Self>(self);
  }

 protected:
  WriteBuilder(std::string table, Item item) : table_(std::move(table)), item_(std::move(item)) {}
  void add_condition(const Condition& condition);
  WriteOptions options() &&;
  TransactWrite action(TransactWrite::Kind kind) &&;

  std::string table_;
  Item item_;  // or the key
  WriteOptions options_;
  References references_;
};

class Put : public WriteBuilder {
 public:
  Put(std::string table, Item item) : WriteBuilder(std::move(table), std::move(item)) {}
  operator PutItemRequest() &&;                                                              // NOLINT
  operator TransactWrite() && { return std::move(*this).action(TransactWrite::Kind::put); }  // NOLINT
};

class Delete : public WriteBuilder {
 public:
  Delete(std::string table, Item key) : WriteBuilder(std::move(table), std::move(key)) {}
  operator DeleteItemRequest() &&;                                                              // NOLINT
  operator TransactWrite() && { return std::move(*this).action(TransactWrite::Kind::remove); }  // NOLINT
};

class Update : public WriteBuilder {
 public:
  Update(std::string table, Item key) : WriteBuilder(std::move(table), std::move(key)) {}

  template <class Self>
  Self&& set(this Self&& self, std::string_view name, ValueRef value) {
    self.add_set(name, value);
    return std::forward<Self>(self);
  }
  // Where there is no such attribute yet.
  template <class Self>
  Self&& set_if_absent(this Self&& self, std::string_view name, ValueRef value) {
    self.add_set_if_absent(name, value);
    return std::forward<Self>(self);
  }
  // To a number, or to a set.
  template <class Self>
  Self&& add(this Self&& self, std::string_view name, ValueRef value) {
    self.add_addition(name, value);
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& remove(this Self&& self, std::string_view name) {
    self.add_removal(name);
    return std::forward<Self>(self);
  }

  operator UpdateItemRequest() &&;  // NOLINT
  operator TransactWrite() &&;      // NOLINT

 private:
  void add_set(std::string_view name, ValueRef value);
  void add_set_if_absent(std::string_view name, ValueRef value);
  void add_addition(std::string_view name, ValueRef value);
  void add_removal(std::string_view name);
  std::string text() const;

  std::string sets_;
  std::string removals_;
  std::string additions_;
};

// Of a transaction: an item that is asked about, and left as it is.
class Check : public WriteBuilder {
 public:
  Check(std::string table, Item key) : WriteBuilder(std::move(table), std::move(key)) {}
  operator TransactWrite() && { return std::move(*this).action(TransactWrite::Kind::check); }  // NOLINT
};

// What Query and Scan have in common.
class ReadBuilder {
 public:
  template <class Self>
  Self&& index(this Self&& self, std::string name) {
    self.options_.index = std::move(name);
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& limit(this Self&& self, int64_t most) {
    self.options_.limit = most;
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& consistent(this Self&& self) {
    self.options_.consistent = true;
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& filter(this Self&& self, const Condition& condition) {
    self.options_.filter = self.references_.text(condition);
    return std::forward<Self>(self);
  }
  // Nothing of the items but these.
  template <class Self>
  Self&& only(this Self&& self, const std::vector<std::string>& attributes) {
    self.options_.projection = self.references_.list(attributes);
    return std::forward<Self>(self);
  }

 protected:
  explicit ReadBuilder(std::string table) { options_.table = std::move(table); }
  ReadOptions options() &&;

  ReadOptions options_;
  References references_;
};

// Needs its partition; the sort key may be bounded once.
class Query : public ReadBuilder {
 public:
  explicit Query(std::string table) : ReadBuilder(std::move(table)) {}

  template <class Self>
  Self&& partition(this Self&& self, std::string_view key, ValueRef value) {
    return std::forward<Self>(self).where(equals(key, value));
  }
  template <class Self>
  Self&& after(this Self&& self, std::string_view key, ValueRef value) {
    return std::forward<Self>(self).where(greater(key, value));
  }
  // A condition on the sort key: less, at_least, begins_with, between, …
  template <class Self>
  Self&& where(this Self&& self, const Condition& condition) {
    self.add_key_condition(condition);
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& descending(this Self&& self) {
    self.forward_ = false;
    return std::forward<Self>(self);
  }

  operator QueryRequest() &&;  // NOLINT

 private:
  void add_key_condition(const Condition& condition);

  std::string key_condition_;
  bool forward_ = true;
};

class Scan : public ReadBuilder {
 public:
  explicit Scan(std::string table) : ReadBuilder(std::move(table)) {}
  operator ScanRequest() && { return {.options = std::move(*this).options()}; }  // NOLINT
};

}  // namespace tabella::store

#include "item/value.h"

#include <algorithm>
#include <unordered_map>

#include "base/bytes.h"
#include "base/hash.h"
#include "item/number.h"

namespace tabella::item {
namespace {

// Tags are Type's numbers; BOOL has two, so that a boolean is one byte. On disk: do not change.
constexpr char kFalse = 7;
constexpr char kTrue = 11;
constexpr char kItemFormat = 1;

std::string_view take_number(std::string_view& in) { return take(in, number_length(in)); }

// Takes one whole value off the front of `in`.
ValueView take_value(std::string_view& in) {
  if (in.empty()) return {};
  const auto whole = in;
  const Type type = ValueView(in).type();
  in.remove_prefix(1);
  switch (type) {
    case Type::BOOL:
    case Type::NUL: break;
    case Type::N: take_number(in); break;
    case Type::S:
    case Type::B:
    case Type::SS:
    case Type::NS:
    case Type::BS:
    case Type::L:
    case Type::M: take_sized(in); break;
  }
  return ValueView(whole.substr(0, whole.size() - in.size()));
}

// What follows a container's tag and length: its count and elements.
std::string_view body_of(ValueView value) {
  auto in = value.bytes().substr(1);
  return take_sized(in);
}

bool maps_equal(ValueView a, ValueView b) {
  if (a.count() != b.count()) return false;
  const auto sorted = [](ValueView map) {
    std::vector<std::pair<std::string_view, ValueView>> members;
    members.reserve(map.count());
    for (Elements e(map); e.next();) members.emplace_back(e.name(), e.value());
    std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
    return members;
  };
  return std::ranges::equal(sorted(a), sorted(b), [](const auto& x, const auto& y) {
    return x.first == y.first && equal(x.second, y.second);
  });
}

bool sets_equal(ValueView a, ValueView b) {
  return a.count() == b.count() && ordered_contents(a) == ordered_contents(b);
}

// Nearly every set stands in order already.
void put_in_order(std::vector<std::string_view>& contents) {
  if (!std::ranges::is_sorted(contents)) std::ranges::sort(contents);
}

}  // namespace

std::string_view type_name(Type type) {
  switch (type) {
    case Type::S: return "S";
    case Type::N: return "N";
    case Type::B: return "B";
    case Type::SS: return "SS";
    case Type::NS: return "NS";
    case Type::BS: return "BS";
    case Type::BOOL: return "BOOL";
    case Type::NUL: return "NULL";
    case Type::L: return "L";
    case Type::M: return "M";
  }
  return "";
}

std::optional<Type> type_from_name(std::string_view name) {
  for (int i = static_cast<int>(Type::S); i <= static_cast<int>(Type::M); ++i)
    if (type_name(static_cast<Type>(i)) == name) return static_cast<Type>(i);
  return std::nullopt;
}

Type ValueView::type() const { return bytes_[0] == kTrue ? Type::BOOL : static_cast<Type>(bytes_[0]); }

std::string_view ValueView::content() const {
  auto in = bytes_.substr(1);
  return type() == Type::N ? in : take_sized(in);
}

bool ValueView::boolean() const { return bytes_[0] == kTrue; }

size_t ValueView::count() const {
  auto body = body_of(*this);
  return take_varint(body);
}

size_t ValueView::size() const {
  switch (type()) {
    case Type::BOOL:
    case Type::NUL: return 1;
    case Type::N: return number_size(content());
    case Type::S:
    case Type::B: return content().size();
    case Type::SS:
    case Type::BS:
    case Type::NS: {
      size_t total = 0;
      for (Elements e(*this); e.next();)
        total += type() == Type::NS ? number_size(e.content()) : e.content().size();
      return total;
    }
    case Type::L:
    case Type::M: {
      size_t total = 3;
      for (Elements e(*this); e.next();) total += 1 + e.name().size() + e.value().size();
      return total;
    }
  }
  return 0;
}

std::optional<ValueView> ValueView::member(std::string_view name) const {
  if (type() != Type::M) return std::nullopt;
  for (Elements e(*this); e.next();)
    if (e.name() == name) return e.value();
  return std::nullopt;
}

std::optional<ValueView> ValueView::element(size_t index) const {
  if (type() != Type::L || index >= count()) return std::nullopt;
  Elements e(*this);
  for (size_t i = 0; i <= index; ++i) e.next();
  return e.value();
}

Elements::Elements(ValueView container)
    : type_(container.type()), rest_(body_of(container)), left_(take_varint(rest_)) {}

bool Elements::next() {
  if (left_ == 0 || rest_.empty()) return false;
  --left_;
  if (type_ == Type::NS) {
    content_ = take_number(rest_);
  } else if (is_set(type_)) {
    content_ = take_sized(rest_);
  } else {
    if (type_ == Type::M) name_ = take_sized(rest_);
    value_ = take_value(rest_);
  }
  return true;
}

std::vector<std::string_view> ordered_contents(ValueView set) {
  std::vector<std::string_view> contents;
  contents.reserve(std::min(set.count(), set.bytes().size()));
  for (Elements e(set); e.next();) contents.push_back(e.content());
  put_in_order(contents);
  return contents;
}

bool equal(ValueView a, ValueView b) {
  if (a.bytes() == b.bytes()) return true;
  if (a.type() != b.type()) return false;
  if (is_set(a.type())) return sets_equal(a, b);
  if (a.type() == Type::L) {
    if (a.count() != b.count()) return false;
    Elements x(a);
    Elements y(b);
    while (x.next() && y.next())
      if (!equal(x.value(), y.value())) return false;
    return true;
  }
  if (a.type() == Type::M) return maps_equal(a, b);
  return false;
}

std::optional<int> compare(ValueView a, ValueView b) {
  if (a.type() != b.type() || !is_scalar_key(a.type())) return std::nullopt;
  return a.content().compare(b.content());
}

int nesting(ValueView value) {
  if (value.type() != Type::L && value.type() != Type::M) return 0;
  int deepest = 0;
  for (Elements e(value); e.next();) deepest = std::max(deepest, nesting(e.value()));
  return deepest + 1;
}

size_t ItemView::size() const {
  auto in = bytes_.substr(1);
  return take_varint(in);
}

size_t ItemView::count() const {
  auto in = bytes_.substr(1);
  take_varint(in);
  return take_varint(in);
}

std::optional<ValueView> ItemView::find(std::string_view name) const {
  for (Attributes a(*this); a.next();)
    if (a.name() == name) return a.value();
  return std::nullopt;
}

namespace {

void append_sorted(std::string& out, std::vector<std::string> parts) {
  std::ranges::sort(parts);
  put_varint(out, parts.size());
  for (const auto& part : parts) put_sized(out, part);
}

std::string canonical(std::string_view name, ValueView value);

std::string canonical(ValueView value) {
  const Type type = value.type();
  if (!is_set(type) && type != Type::L && type != Type::M) return std::string(value.bytes());
  std::string out(1, static_cast<char>(type));
  std::vector<std::string> parts;
  for (Elements e(value); e.next();) {
    if (type == Type::L)
      put_sized(out, canonical(e.value()));
    else if (type == Type::M)
      parts.push_back(canonical(e.name(), e.value()));
    else
      parts.emplace_back(e.content());
  }
  append_sorted(out, std::move(parts));
  return out;
}

std::string canonical(std::string_view name, ValueView value) {
  std::string out;
  put_sized(out, name);
  return out.append(canonical(value));
}

}  // namespace

void append_canonical(std::string& out, ItemView item) {
  std::vector<std::string> parts;
  for (Attributes each(item); each.next();) parts.push_back(canonical(each.name(), each.value()));
  append_sorted(out, std::move(parts));
}

bool equal(ItemView a, ItemView b) {
  if (a.bytes() == b.bytes()) return true;
  if (a.count() != b.count() || a.size() != b.size()) return false;
  // Most often the attributes stand in the same order.
  Attributes x(a);
  Attributes y(b);
  bool same_order = true;
  while (same_order && x.next() && y.next()) {
    same_order = x.name() == y.name();
    if (same_order && !equal(x.value(), y.value())) return false;
  }
  if (same_order) return true;
  std::unordered_map<std::string_view, ValueView, KeyedHash> others;
  for (Attributes each(b); each.next();) others.emplace(each.name(), each.value());
  for (Attributes each(a); each.next();) {
    const auto other = others.find(each.name());
    if (other == others.end() || !equal(each.value(), other->second)) return false;
  }
  return true;
}

Attributes::Attributes(ItemView item) : rest_(item.bytes().substr(1)) {
  take_varint(rest_);
  left_ = take_varint(rest_);
}

bool Attributes::next() {
  if (left_ == 0 || rest_.empty()) return false;
  --left_;
  name_ = take_sized(rest_);
  value_ = take_value(rest_);
  return true;
}

Item::Item() : Item(ItemBuilder().finish()) {}

void ItemBuilder::start(std::string_view name) {
  ++count_;
  size_ += name.size();
  put_sized(entries_, name);
}

void ItemBuilder::add(std::string_view name, ValueView value) {
  start(name);
  size_ += value.size();
  entries_.append(value.bytes());
}

Item ItemBuilder::finish() const {
  std::string bytes;
  bytes.reserve(entries_.size() + 8);
  bytes.push_back(kItemFormat);
  put_varint(bytes, size_);
  put_varint(bytes, count_);
  bytes.append(entries_);
  return Item(std::move(bytes));
}

Value Value::integer(int64_t value) { return number(encode_int(value)); }

Value Value::list(std::vector<Value> values) {
  Value v(Type::L, {});
  v.values_ = std::move(values);
  return v;
}

Value Value::map() { return {Type::M, {}}; }

Value Value::set(Type type, std::vector<std::string> contents) {
  Value v(type, {});
  v.names_ = std::move(contents);
  return v;
}

Value Value::decode(ValueView view) {
  const Type type = view.type();
  if (type == Type::BOOL) return boolean(view.boolean());
  if (type == Type::NUL) return null();
  if (is_scalar_key(type)) return {type, std::string(view.content())};
  Value v(type, {});
  for (Elements e(view); e.next();) {
    if (is_set(type)) {
      v.names_.emplace_back(e.content());
      continue;
    }
    if (type == Type::M) v.names_.emplace_back(e.name());
    v.values_.push_back(decode(e.value()));
  }
  return v;
}

Value* Value::member(std::string_view name) {
  const auto at = std::find(names_.begin(), names_.end(), name);
  return at == names_.end() ? nullptr : &values_[static_cast<size_t>(at - names_.begin())];
}

void Value::set_member(std::string_view name, Value value) {
  if (Value* old = member(name)) {
    *old = std::move(value);
    return;
  }
  names_.emplace_back(name);
  values_.push_back(std::move(value));
}

void Value::remove_member(std::string_view name) {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) return;
  values_.erase(values_.begin() + (at - names_.begin()));
  names_.erase(at);
}

void Value::append_to(std::string& out) const {
  switch (type_) {
    case Type::S:
    case Type::B:
    case Type::N: append_scalar(out, type_, content_); return;
    case Type::BOOL: append_boolean(out, !content_.empty()); return;
    case Type::NUL: append_null(out); return;
    case Type::SS:
    case Type::NS:
    case Type::BS: {
      std::vector<std::string_view> contents(names_.begin(), names_.end());
      put_in_order(contents);
      ContainerEncoder set(out, type_);
      for (const auto content : contents) set.add_content(content);
      set.finish();
      return;
    }
    case Type::L:
    case Type::M: {
      ContainerEncoder container(out, type_);
      for (size_t i = 0; i < values_.size(); ++i) {
        if (type_ == Type::M)
          container.start_member(names_[i]);
        else
          container.start_element();
        values_[i].append_to(out);
      }
      container.finish();
      return;
    }
  }
}

std::string encode(const Value& value) {
  std::string out;
  value.append_to(out);
  return out;
}

Value decode_item(ItemView item) {
  Value map = Value::map();
  for (Attributes a(item); a.next();) {
    map.names_.emplace_back(a.name());
    map.values_.push_back(Value::decode(a.value()));
  }
  return map;
}

Item encode_item(const Value& map_value) {
  ItemBuilder builder;
  for (size_t i = 0; i < map_value.elements().size(); ++i)
    builder.add_with(map_value.contents()[i],
                     [&](std::string& out) { map_value.elements()[i].append_to(out); });
  return builder.finish();
}

void append_scalar(std::string& out, Type type, std::string_view content) {
  out.push_back(static_cast<char>(type));
  if (type == Type::N)
    out.append(content);
  else
    put_sized(out, content);
}

void append_boolean(std::string& out, bool value) { out.push_back(value ? kTrue : kFalse); }

void append_null(std::string& out) { out.push_back(static_cast<char>(Type::NUL)); }

void ContainerEncoder::add_content(std::string_view content) {
  ++count_;
  if (type_ == Type::NS)
    out_.append(content);
  else
    put_sized(out_, content);
}

void ContainerEncoder::start_member(std::string_view name) {
  ++count_;
  put_sized(out_, name);
}

void ContainerEncoder::finish() {
  std::string count;
  put_varint(count, count_);
  std::string head(1, static_cast<char>(type_));
  put_varint(head, out_.size() - start_ + count.size());
  out_.insert(start_, head + count);
}

}  // namespace tabella::item

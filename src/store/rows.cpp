#include "store/rows.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace tabella::store {
namespace {

void append(std::string& list, std::string_view entry, std::string_view separator = ", ") {
  if (!list.empty()) list.append(separator);
  list.append(entry);
}

Condition compare(std::string_view name, std::string_view comparator, ValueRef value) {
  return {fmt::format("# {} :", comparator), {name}, {value}};
}

}  // namespace

void ValueRef::append_to(std::string& out) const {
  if (value_) return value_->append_to(out);
  if (strings_) return item::Value::set(type_, *strings_).append_to(out);
  if (type_ == item::Type::BOOL) return item::append_boolean(out, number_ != 0);
  if (type_ == item::Type::N) return item::append_scalar(out, type_, item::encode_int(number_));
  item::append_scalar(out, type_, content_);
}

Condition::Condition(std::string text, std::initializer_list<std::string_view> names,
                     std::initializer_list<ValueRef> values)
    : text_(std::move(text)), names_(names.begin(), names.end()) {
  for (const auto& value : values) value.append_to(values_.emplace_back());
}

Condition operator&&(Condition a, Condition b) {
  a.text_.append(" AND ").append(b.text_);
  std::ranges::move(b.names_, std::back_inserter(a.names_));
  std::ranges::move(b.values_, std::back_inserter(a.values_));
  return a;
}

Condition operator||(Condition a, Condition b) {
  a.text_ = fmt::format("({} OR {})", a.text_, b.text_);
  std::ranges::move(b.names_, std::back_inserter(a.names_));
  std::ranges::move(b.values_, std::back_inserter(a.values_));
  return a;
}

Condition exists(std::string_view name) { return {"attribute_exists(#)", {name}, {}}; }
Condition absent(std::string_view name) { return {"attribute_not_exists(#)", {name}, {}}; }
Condition equals(std::string_view name, ValueRef value) { return compare(name, "=", value); }
Condition differs(std::string_view name, ValueRef value) { return compare(name, "<>", value); }
Condition less(std::string_view name, ValueRef value) { return compare(name, "<", value); }
Condition at_most(std::string_view name, ValueRef value) { return compare(name, "<=", value); }
Condition greater(std::string_view name, ValueRef value) { return compare(name, ">", value); }
Condition at_least(std::string_view name, ValueRef value) { return compare(name, ">=", value); }
Condition begins_with(std::string_view name, ValueRef value) {
  return {"begins_with(#, :)", {name}, {value}};
}
Condition between(std::string_view name, ValueRef least, ValueRef most) {
  return {"# BETWEEN : AND :", {name}, {least, most}};
}

std::string References::name(std::string_view attribute) {
  const auto known = std::ranges::find(names_, attribute, &Names::value_type::second);
  if (known != names_.end()) return known->first;
  return names_.emplace_back(fmt::format("#n{}", names_.size()), attribute).first;
}

template <class Append>
std::string References::value_with(Append append) {
  auto reference = fmt::format(":v{}", count_++);
  values_.add_with(reference, append);
  return reference;
}

std::string References::value(ValueRef value) {
  return value_with([&](std::string& out) { value.append_to(out); });
}

std::string References::text(const Condition& condition) {
  std::string text;
  auto next_name = condition.names_.begin();
  auto next_value = condition.values_.begin();
  for (const char c : condition.text_) {
    if (c == '#')
      text.append(name(*next_name++));
    else if (c == ':')
      text.append(value_with([&](std::string& out) { out.append(*next_value++); }));
    else
      text.push_back(c);
  }
  return text;
}

std::string References::list(const std::vector<std::string>& attributes) {
  std::string text;
  for (const auto& attribute : attributes) append(text, name(attribute));
  return text;
}

ExpressionAttributes References::attributes() && {
  ExpressionAttributes attributes;
  if (!names_.empty()) attributes.names = std::move(names_);
  if (count_ > 0) attributes.values = values_.finish();
  return attributes;
}

void WriteBuilder::add_condition(const Condition& condition) {
  append(options_.condition ? *options_.condition : options_.condition.emplace(), references_.text(condition),
         " AND ");
}

WriteOptions WriteBuilder::options() && {
  options_.attributes = std::move(references_).attributes();
  return std::move(options_);
}

TransactWrite WriteBuilder::action(TransactWrite::Kind kind) && {
  return {.kind = kind,
          .table = std::move(table_),
          .item = std::move(item_),
          .update = {},
          .condition = std::move(options_.condition),
          .attributes = std::move(references_).attributes(),
          .return_old_on_failure = options_.return_old_on_failure};
}

Put::operator PutItemRequest() && {
  return {.table = std::move(table_), .item = std::move(item_), .options = std::move(*this).options()};
}

Delete::operator DeleteItemRequest() && {
  return {.table = std::move(table_), .key = std::move(item_), .options = std::move(*this).options()};
}

void Update::add_set(std::string_view name, ValueRef value) {
  append(sets_, fmt::format("{} = {}", references_.name(name), references_.value(value)));
}
void Update::add_set_if_absent(std::string_view name, ValueRef value) {
  const auto attribute = references_.name(name);
  append(sets_, fmt::format("{} = if_not_exists({}, {})", attribute, attribute, references_.value(value)));
}
void Update::add_addition(std::string_view name, ValueRef value) {
  append(additions_, fmt::format("{} {}", references_.name(name), references_.value(value)));
}
void Update::add_removal(std::string_view name) { append(removals_, references_.name(name)); }

std::string Update::text() const {
  std::string text;
  if (!sets_.empty()) append(text, "SET " + sets_, " ");
  if (!removals_.empty()) append(text, "REMOVE " + removals_, " ");
  if (!additions_.empty()) append(text, "ADD " + additions_, " ");
  return text;
}

Update::operator UpdateItemRequest() && {
  return {.table = std::move(table_),
          .key = std::move(item_),
          .update = text(),
          .updates = {},
          .options = std::move(*this).options()};
}

Update::operator TransactWrite() && {
  auto action = std::move(*this).action(TransactWrite::Kind::update);
  action.update = text();
  return action;
}

ReadOptions ReadBuilder::options() && {
  options_.attributes = std::move(references_).attributes();
  return std::move(options_);
}

void Query::add_key_condition(const Condition& condition) {
  append(key_condition_, references_.text(condition), " AND ");
}

Query::operator QueryRequest() && {
  return {.options = std::move(*this).options(),
          .key_condition = std::move(key_condition_),
          .key_conditions = {},
          .forward = forward_};
}

}  // namespace tabella::store

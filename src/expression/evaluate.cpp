#include "expression/evaluate.h"

#include <algorithm>
#include <variant>

#include "base/substring.h"
#include "expression/path_tree.h"
#include "item/number.h"

namespace tabella::expression {
namespace {

using item::Elements;
using item::ItemView;
using item::Lookup;
using item::Type;
using item::ValueView;

// DynamoDB counts a string in UTF-16 units, as Java does: one per code point, two beyond the first plane.
size_t utf16_length(std::string_view text) {
  size_t units = 0;
  for (char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte & 0xc0) != 0x80) units += byte >= 0xf0 ? 2 : 1;
  }
  return units;
}

std::optional<size_t> size_of(ValueView value) {
  switch (value.type()) {
    case Type::S: return utf16_length(value.content());
    case Type::B: return value.content().size();
    case Type::SS:
    case Type::NS:
    case Type::BS:
    case Type::L:
    case Type::M: return value.count();
    case Type::N:
    case Type::BOOL:
    case Type::NUL: break;
  }
  return std::nullopt;
}

// `storage` keeps the bytes of a computed value alive.
std::optional<ValueView> operand_value(const Operand& operand, Lookup& item, std::string& storage) {
  if (operand.kind == Operand::Kind::value) return operand.value;
  if (operand.kind == Operand::Kind::path) return find(item, operand.path);
  const auto argument = operand_value(operand.arguments[0], item, storage);
  if (!argument) return std::nullopt;
  const auto size = size_of(*argument);
  if (!size) return std::nullopt;
  storage.clear();
  item::append_scalar(storage, Type::N, item::encode_int(static_cast<int64_t>(*size)));
  return ValueView(storage);
}

bool holds(Comparator comparator, ValueView a, ValueView b) {
  if (comparator == Comparator::equal) return item::equal(a, b);
  if (comparator == Comparator::not_equal) return !item::equal(a, b);
  const auto order = item::compare(a, b);
  if (!order) return false;
  switch (comparator) {
    case Comparator::less: return *order < 0;
    case Comparator::less_equal: return *order <= 0;
    case Comparator::greater: return *order > 0;
    case Comparator::greater_equal: return *order >= 0;
    case Comparator::equal:
    case Comparator::not_equal: break;
  }
  return false;
}

bool compares(const Condition& condition, Lookup& item) {
  std::string storage_a;
  std::string storage_b;
  const auto a = operand_value(condition.operands[0], item, storage_a);
  const auto b = operand_value(condition.operands[1], item, storage_b);
  // Only <> holds for an attribute that is not there; a size that cannot be taken compares to nothing.
  if (!a || !b) {
    const bool sizes = condition.operands[0].kind == Operand::Kind::function ||
                       condition.operands[1].kind == Operand::Kind::function;
    return condition.comparator == Comparator::not_equal && !sizes;
  }
  return holds(condition.comparator, *a, *b);
}

bool is_between(const Condition& condition, Lookup& item) {
  std::string storage[3];
  const auto value = operand_value(condition.operands[0], item, storage[0]);
  const auto low = operand_value(condition.operands[1], item, storage[1]);
  const auto high = operand_value(condition.operands[2], item, storage[2]);
  return value && low && high && holds(Comparator::greater_equal, *value, *low) &&
         holds(Comparator::less_equal, *value, *high);
}

bool is_in(const Condition& condition, Lookup& item) {
  std::string storage;
  const auto value = operand_value(condition.operands[0], item, storage);
  if (!value) return false;
  return std::any_of(condition.operands.begin() + 1, condition.operands.end(), [&](const Operand& operand) {
    std::string other_storage;
    const auto other = operand_value(operand, item, other_storage);
    return other && item::equal(*value, *other);
  });
}

bool contains(ValueView container, ValueView part) {
  const Type type = container.type();
  if (type == Type::S || type == Type::B)
    return part.type() == type && has_substring(container.content(), part.content());
  if (type == Type::L) {
    for (Elements e(container); e.next();)
      if (item::equal(e.value(), part)) return true;
    return false;
  }
  const bool member = (type == Type::SS && part.type() == Type::S) ||
                      (type == Type::NS && part.type() == Type::N) ||
                      (type == Type::BS && part.type() == Type::B);
  if (!member) return false;
  for (Elements e(container); e.next();)
    if (e.content() == part.content()) return true;
  return false;
}

bool function_holds(const Condition& condition, Lookup& item) {
  std::string storage_a;
  const auto a = operand_value(condition.operands[0], item, storage_a);
  if (condition.function == "attribute_exists") return a.has_value();
  if (condition.function == "attribute_not_exists") return !a.has_value();
  std::string storage_b;
  const auto b = operand_value(condition.operands[1], item, storage_b);
  if (!a || !b) return false;
  if (condition.function == "attribute_type") return item::type_name(a->type()) == b->content();
  if (condition.function == "contains") return contains(*a, *b);
  const bool text = a->type() == Type::S || a->type() == Type::B;
  return text && a->type() == b->type() && a->content().starts_with(b->content());
}

// A projection as a tree: the steps that are wanted below each step.
using Wanted = PathTree<std::monostate>;

Wanted to_tree(const Projection& projection) {
  Wanted root;
  for (const auto& path : projection) root.at(path).leaf.emplace();
  return root;
}

// Appends what is wanted of `value`; false, and nothing, if that is nothing.
bool append_wanted(std::string& out, ValueView value, const Wanted& wanted) {
  if (wanted.leaf) {
    out.append(value.bytes());
    return true;
  }
  const Type type = value.type();
  if (type != Type::M && type != Type::L) return false;
  const size_t start = out.size();
  item::ContainerEncoder container(out, type);
  bool any = false;
  uint32_t index = 0;
  for (Elements e(value); e.next(); ++index) {
    const Wanted* below = nullptr;
    if (type == Type::M) {
      if (const auto at = wanted.members.find(e.name()); at != wanted.members.end()) below = &at->second;
    } else if (const auto at = wanted.elements.find(index); at != wanted.elements.end()) {
      below = &at->second;
    }
    if (!below) continue;
    std::string part;
    if (!append_wanted(part, e.value(), *below)) continue;
    any = true;
    if (type == Type::M)
      container.start_member(e.name());
    else
      container.start_element();
    out.append(part);
  }
  if (any)
    container.finish();
  else
    out.resize(start);
  return any;
}

}  // namespace

std::optional<ValueView> find(Lookup& item, const Path& path) {
  auto at = item.attribute(path[0].name);
  for (size_t i = 1; at && i < path.size(); ++i)
    at = path[i].is_index ? item.element(*at, path[i].index) : item.member(*at, path[i].name);
  return at;
}

bool evaluate(const Condition& condition, Lookup& item) {
  const auto child_holds = [&](const Condition& child) { return evaluate(child, item); };
  switch (condition.kind) {
    case Condition::Kind::all_of: return std::ranges::all_of(condition.children, child_holds);
    case Condition::Kind::any_of: return std::ranges::any_of(condition.children, child_holds);
    case Condition::Kind::negation: return !child_holds(condition.children[0]);
    case Condition::Kind::comparison: return compares(condition, item);
    case Condition::Kind::between: return is_between(condition, item);
    case Condition::Kind::in: return is_in(condition, item);
    case Condition::Kind::function: return function_holds(condition, item);
  }
  return false;
}

bool evaluate(const Condition& condition, const ItemView* item) {
  Lookup lookup(item);
  return evaluate(condition, lookup);
}

size_t cost_of(const Condition& condition, size_t item_size) {
  size_t cost = 0;
  for (const auto& operand : condition.operands)
    cost += operand.kind == Operand::Kind::value ? operand.value.bytes().size() : item_size;
  for (const auto& child : condition.children) cost += cost_of(child, item_size);
  return cost;
}

item::Item project(ItemView item, const Projection& projection) {
  item::ItemBuilder builder;
  constexpr size_t kFew = 8;
  const bool flat = projection.size() <= kFew &&
                    std::ranges::all_of(projection, [](const Path& path) { return path.size() == 1; });
  if (flat) {
    for (item::Attributes a(item); a.next();)
      if (std::ranges::any_of(projection, [&](const Path& path) { return path[0].name == a.name(); }))
        builder.add(a.name(), a.value());
    return builder.finish();
  }
  const Wanted root = to_tree(projection);
  std::string part;
  for (item::Attributes a(item); a.next();) {
    const auto wanted = root.members.find(a.name());
    part.clear();
    if (wanted != root.members.end() && append_wanted(part, a.value(), wanted->second))
      builder.add(a.name(), ValueView(part));
  }
  return builder.finish();
}

}  // namespace tabella::expression

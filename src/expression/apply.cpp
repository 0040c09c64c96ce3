#include "expression/apply.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "expression/evaluate.h"
#include "expression/path_tree.h"
#include "item/number.h"

namespace tabella::expression {
namespace {

using item::ItemView;
using item::Type;
using item::Value;

constexpr const char* kBadOperand = "An operand in the update expression has an incorrect data type";
constexpr const char* kBadPath = "The document path provided in the update expression is invalid for update";
constexpr const char* kNoAttribute =
    "The provided expression refers to an attribute that does not exist in the item";
constexpr const char* kLegacyMismatch = "Type mismatch for attribute to update";

constexpr const char* kTooLarge = "Item size to update has exceeded the maximum allowed size";

// What an update reads. Copies are counted: an expression may name a large attribute many times, and more
// than this cannot end in an item anyway.
struct Source {
  item::Lookup item;
  bool exists;
  size_t budget = 2u << 20;

  Checked<Value> copy(item::ValueView value) {
    if (value.bytes().size() > budget) return invalid(kTooLarge);
    budget -= value.bytes().size();
    return Value::decode(value);
  }
};

Checked<Value> value_of(const Operand& operand, Source& old);

Checked<Value> sum(const Operand& operand, Source& old) {
  TABELLA_ASSIGN(const auto a, value_of(operand.arguments[0], old));
  TABELLA_ASSIGN(const auto b, value_of(operand.arguments[1], old));
  if (a.type() != Type::N || b.type() != Type::N) return invalid(kBadOperand);
  TABELLA_ASSIGN(auto number, operand.kind == Operand::Kind::plus
                                  ? item::add_numbers(a.content(), b.content())
                                  : item::subtract_numbers(a.content(), b.content()));
  return Value::number(std::move(number));
}

Checked<Value> call(const Operand& function, Source& old) {
  if (function.text == "if_not_exists") {
    if (const auto found = find(old.item, function.arguments[0].path)) return old.copy(*found);
    return value_of(function.arguments[1], old);
  }
  TABELLA_ASSIGN(auto front, value_of(function.arguments[0], old));
  TABELLA_ASSIGN(auto back, value_of(function.arguments[1], old));
  if (front.type() != Type::L || back.type() != Type::L) return invalid(kBadOperand);
  std::ranges::move(back.elements(), std::back_inserter(front.elements()));
  return front;
}

Checked<Value> value_of(const Operand& operand, Source& old) {
  switch (operand.kind) {
    case Operand::Kind::value: return old.copy(operand.value);
    case Operand::Kind::path: {
      const auto found = find(old.item, operand.path);
      if (!found) return invalid(kNoAttribute);
      return old.copy(*found);
    }
    case Operand::Kind::plus:
    case Operand::Kind::minus: return sum(operand, old);
    case Operand::Kind::function: break;
  }
  return call(operand, old);
}

Checked<Value> added(const Value& to, const Value& what, bool legacy) {
  const char* mismatch = legacy ? kLegacyMismatch : kBadOperand;
  if (to.type() != what.type()) return invalid(mismatch);
  if (to.type() == Type::N) {
    TABELLA_ASSIGN(auto number, item::add_numbers(to.content(), what.content()));
    return Value::number(std::move(number));
  }
  Value sum = to;
  if (to.type() == Type::L && legacy) {
    std::ranges::copy(what.elements(), std::back_inserter(sum.elements()));
    return sum;
  }
  if (!item::is_set(to.type())) return invalid(mismatch);
  const std::unordered_set<std::string_view, KeyedHash> known(to.contents().begin(), to.contents().end());
  for (const auto& content : what.contents())
    if (!known.contains(content)) sum.contents().push_back(content);
  return sum;
}

// Nothing if no element is left.
Checked<std::optional<Value>> erased(Value from, const UpdateAction& action) {
  const auto what = Value::decode(action.value.value);
  if (from.type() != what.type()) return invalid(action.legacy ? kLegacyMismatch : kBadOperand);
  const std::unordered_set<std::string_view, KeyedHash> gone(what.contents().begin(), what.contents().end());
  std::erase_if(from.contents(), [&](const std::string& content) { return gone.contains(content); });
  if (from.contents().empty()) return std::nullopt;
  return std::optional(std::move(from));
}

bool before(const Path& a, const Path& b) {
  return std::ranges::lexicographical_compare(a, b, [](const Step& x, const Step& y) {
    return std::tie(x.is_index, x.index, x.name) < std::tie(y.is_index, y.index, y.name);
  });
}

// Indexes in an update mean the list as it was: what is set comes first, with appended elements in the order
// of their indexes, then removals from the back.
std::vector<const UpdateAction*> in_order(const Update& update) {
  std::vector<const UpdateAction*> actions;
  for (const auto& action : update) actions.push_back(&action);
  const auto removal = std::partition(actions.begin(), actions.end(), [](const UpdateAction* a) {
    return a->kind != UpdateAction::Kind::remove;
  });
  std::sort(actions.begin(), removal, [](const auto* a, const auto* b) { return before(a->path, b->path); });
  std::sort(removal, actions.end(), [](const auto* a, const auto* b) { return before(b->path, a->path); });
  return actions;
}

// The value that an action gives to what stands at its path; nothing if it takes it away.
Checked<std::optional<Value>> next_value(const UpdateAction& action,
                                         const std::optional<item::ValueView>& now, Source& old) {
  switch (action.kind) {
    case UpdateAction::Kind::set: return value_of(action.value, old);
    case UpdateAction::Kind::remove: return std::nullopt;
    case UpdateAction::Kind::add: {
      auto what = Value::decode(action.value.value);
      if (!now) return what;
      return added(Value::decode(*now), what, action.legacy);
    }
    case UpdateAction::Kind::erase: break;
  }
  if (!now) return std::nullopt;
  return erased(Value::decode(*now), action);
}

// What becomes of the value at one path.
struct Changed {
  std::optional<std::string> flat;  // nothing: it is gone
  bool fresh = false;               // there was no value before
};

using Changes = PathTree<Changed>;

// Whether the map or list that holds the path's last step is there.
bool has_parent(item::Lookup& item, const Path& path) {
  if (path.size() == 1) return true;
  const auto parent = find(item, Path(path.begin(), path.end() - 1));
  return parent && parent->type() == (path.back().is_index ? Type::L : Type::M);
}

// Each action reads the item as it was, so none depends on what another has done.
Checked<Changes> collect_changes(const Update& update, Source& source) {
  Changes changes;
  for (const auto* action : in_order(update)) {
    if (!has_parent(source.item, action->path)) {
      if (action->kind == UpdateAction::Kind::remove && !source.exists) continue;
      return invalid(kBadPath);
    }
    const auto now = find(source.item, action->path);
    TABELLA_ASSIGN(const auto value, next_value(*action, now, source));
    if (!value && !now) continue;
    changes.at(action->path).leaf =
        Changed{.flat = value ? std::optional(item::encode(*value)) : std::nullopt, .fresh = !now};
  }
  return changes;
}

void append_changed(std::string& out, item::ValueView old, const Changes& changes);

// Gives `put` what is to stand where `old` stood, if anything is.
template <class Put>
void put_changed(item::ValueView old, const Changes* changes, Put put) {
  if (!changes) return put(old.bytes());
  if (changes->leaf) {
    if (changes->leaf->flat) put(*changes->leaf->flat);
    return;
  }
  std::string part;
  append_changed(part, old, *changes);
  put(part);
}

template <class Children, class Key>
const Changes* changes_at(const Children& children, const Key& key) {
  const auto at = children.find(key);
  return at == children.end() ? nullptr : &at->second;
}

bool is_fresh(const Changes& changes) { return changes.leaf && changes.leaf->fresh; }

void append_changed(std::string& out, item::ValueView old, const Changes& changes) {
  item::ContainerEncoder container(out, old.type());
  const auto put_element = [&](std::string_view flat) {
    container.start_element();
    out.append(flat);
  };
  const auto put_member = [&](std::string_view name, std::string_view flat) {
    container.start_member(name);
    out.append(flat);
  };
  uint32_t place = 0;
  for (item::Elements e(old); e.next(); ++place) {
    if (old.type() == Type::L)
      put_changed(e.value(), changes_at(changes.elements, place), put_element);
    else
      put_changed(e.value(), changes_at(changes.members, e.name()),
                  [&](std::string_view flat) { put_member(e.name(), flat); });
  }
  for (const auto& [name, change] : changes.members)
    if (is_fresh(change)) put_member(name, *change.leaf->flat);
  for (const auto& [index, change] : changes.elements)
    if (is_fresh(change)) put_element(*change.leaf->flat);
  container.finish();
}

item::Item with_changes(ItemView old, const Changes& changes) {
  item::ItemBuilder builder;
  for (item::Attributes a(old); a.next();)
    put_changed(a.value(), changes_at(changes.members, a.name()),
                [&](std::string_view flat) { builder.add(a.name(), item::ValueView(flat)); });
  for (const auto& [name, change] : changes.members)
    if (is_fresh(change)) builder.add(name, item::ValueView(*change.leaf->flat));
  return builder.finish();
}

}  // namespace

Checked<item::Item> apply(const Update& update, ItemView base, bool exists) {
  Source source{.item = item::Lookup(base), .exists = exists};
  TABELLA_ASSIGN(const auto changes, collect_changes(update, source));
  auto result = with_changes(base, changes);
  for (item::Attributes a(result); a.next();)
    if (item::nesting(a.value()) > item::kMaxNesting) return invalid(item::kTooDeep);
  return result;
}

Projection touched_paths(const Update& update) {
  Projection paths;
  for (const auto& action : update) paths.push_back(action.path);
  return paths;
}

}  // namespace tabella::expression

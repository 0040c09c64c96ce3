#include "expression/apply.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "expression/evaluate.h"
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
  ItemView item;
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
    if (const auto found = find(&old.item, function.arguments[0].path)) return old.copy(*found);
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
      const auto found = find(&old.item, operand.path);
      if (!found) return invalid(kNoAttribute);
      return old.copy(*found);
    }
    case Operand::Kind::plus:
    case Operand::Kind::minus: return sum(operand, old);
    case Operand::Kind::function: break;
  }
  return call(operand, old);
}

// The map or list that holds the path's last step; null if the way there is not a document.
Value* parent_of(Value& document, const Path& path) {
  Value* at = &document;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    const auto& step = path[i];
    if (step.is_index) {
      if (at->type() != Type::L || step.index >= at->elements().size()) return nullptr;
      at = &at->elements()[step.index];
    } else {
      if (at->type() != Type::M) return nullptr;
      at = at->member(step.name);
      if (!at) return nullptr;
    }
  }
  return at->type() == (path.back().is_index ? Type::L : Type::M) ? at : nullptr;
}

Value* child_of(Value& parent, const Step& step) {
  if (!step.is_index) return parent.member(step.name);
  return step.index < parent.elements().size() ? &parent.elements()[step.index] : nullptr;
}

void put_child(Value& parent, const Step& step, Value value) {
  if (!step.is_index)
    parent.set_member(step.name, std::move(value));
  else if (step.index < parent.elements().size())
    parent.elements()[step.index] = std::move(value);
  else
    parent.elements().push_back(std::move(value));
}

void remove_child(Value& parent, const Step& step) {
  if (!step.is_index)
    parent.remove_member(step.name);
  else if (step.index < parent.elements().size())
    parent.elements().erase(parent.elements().begin() + step.index);
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
  const std::unordered_set<std::string_view> known(to.contents().begin(), to.contents().end());
  for (const auto& content : what.contents())
    if (!known.contains(content)) sum.contents().push_back(content);
  return sum;
}

Checked<> add(Value& parent, const UpdateAction& action) {
  auto what = Value::decode(action.value.value);
  const Value* to = child_of(parent, action.path.back());
  if (to) {
    TABELLA_ASSIGN(what, added(*to, what, action.legacy));
  }
  put_child(parent, action.path.back(), std::move(what));
  return {};
}

Checked<> erase(Value& parent, const UpdateAction& action) {
  Value* from = child_of(parent, action.path.back());
  if (!from) return {};
  const auto what = Value::decode(action.value.value);
  if (from->type() != what.type()) return invalid(action.legacy ? kLegacyMismatch : kBadOperand);
  const std::unordered_set<std::string_view> gone(what.contents().begin(), what.contents().end());
  std::erase_if(from->contents(), [&](const std::string& content) { return gone.contains(content); });
  if (from->contents().empty()) remove_child(parent, action.path.back());
  return {};
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

Checked<> apply_one(Value& document, const UpdateAction& action, Source& old) {
  Value* parent = parent_of(document, action.path);
  if (!parent) {
    if (action.kind == UpdateAction::Kind::remove && !old.exists) return {};
    return invalid(kBadPath);
  }
  switch (action.kind) {
    case UpdateAction::Kind::set: {
      TABELLA_ASSIGN(auto value, value_of(action.value, old));
      put_child(*parent, action.path.back(), std::move(value));
      return {};
    }
    case UpdateAction::Kind::remove: remove_child(*parent, action.path.back()); return {};
    case UpdateAction::Kind::add: return add(*parent, action);
    case UpdateAction::Kind::erase: break;
  }
  return erase(*parent, action);
}

// The value that an action gives to a whole attribute; nothing if it takes it away.
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
  // As a map of one: erasing the last element takes the attribute with it.
  Value holder = Value::map();
  holder.set_member(action.path[0].name, Value::decode(*now));
  TABELLA_TRY(erase(holder, action));
  if (holder.elements().empty()) return std::nullopt;
  return std::move(holder.elements()[0]);
}

// The usual update touches a few whole attributes: the others keep their bytes as they are.
Checked<item::Item> apply_to_attributes(const Update& update, Source& source) {
  struct Touched {
    const std::string* name;
    std::optional<std::string> flat;
    bool written = false;
  };
  std::vector<Touched> touched;
  touched.reserve(update.size());
  for (const auto* action : in_order(update)) {
    const auto& name = action->path[0].name;
    TABELLA_ASSIGN(const auto value, next_value(*action, source.item.find(name), source));
    touched.push_back({&name, value ? std::optional(item::encode(*value)) : std::nullopt});
  }
  item::ItemBuilder builder;
  for (item::Attributes a(source.item); a.next();) {
    const auto at = std::ranges::find_if(touched, [&](const Touched& t) { return *t.name == a.name(); });
    if (at == touched.end()) {
      builder.add(a.name(), a.value());
      continue;
    }
    at->written = true;
    if (at->flat) builder.add(a.name(), item::ValueView(*at->flat));
  }
  for (const auto& t : touched)
    if (t.flat && !t.written) builder.add(*t.name, item::ValueView(*t.flat));
  return builder.finish();
}

Checked<item::Item> apply_to_document(const Update& update, Source& source) {
  Value document = item::decode_item(source.item);
  for (const auto* action : in_order(update)) TABELLA_TRY(apply_one(document, *action, source));
  return item::encode_item(document);
}

}  // namespace

Checked<item::Item> apply(const Update& update, ItemView base, bool exists) {
  Source source{.item = base, .exists = exists};
  const bool whole = std::ranges::all_of(update, [](const UpdateAction& a) { return a.path.size() == 1; });
  // Many touched attributes are found faster in a tree than by walking.
  constexpr size_t kFew = 32;
  const bool flat = whole && update.size() <= kFew;
  TABELLA_ASSIGN(auto result, flat ? apply_to_attributes(update, source) : apply_to_document(update, source));
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

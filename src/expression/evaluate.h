// Looks at an item through a bound tree.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "expression/tree.h"
#include "item/value.h"

namespace tabella::expression {

// The value at a path, if the item has one. `item` may be null: there is no item.
std::optional<item::ValueView> find(const item::ItemView* item, const Path& path);

// Whether the condition holds. Never fails: what cannot be compared is simply not so.
bool evaluate(const Condition& condition, const item::ItemView* item);

// The parts of the item that the paths name, in their places: maps keep their names, lists are closed up.
item::Item project(item::ItemView item, const Projection& projection);

}  // namespace tabella::expression

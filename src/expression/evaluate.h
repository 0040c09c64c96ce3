// Looks at an item through a bound tree.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "expression/tree.h"
#include "item/lookup.h"
#include "item/value.h"

namespace tabella::expression {

// The value at a path, if the item has one.
std::optional<item::ValueView> find(item::Lookup& item, const Path& path);

// Whether the condition holds. Never fails: what cannot be compared is simply not so. A null item: there is
// none.
bool evaluate(const Condition& condition, item::Lookup& item);
bool evaluate(const Condition& condition, const item::ItemView* item);

// The bytes that may have to be looked at to evaluate it on an item of that size.
size_t cost_of(const Condition& condition, size_t item_size);

// The parts of the item that the paths name, in their places: maps keep their names, lists are closed up.
item::Item project(item::ItemView item, const Projection& projection);

}  // namespace tabella::expression

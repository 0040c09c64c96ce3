// Carries out an update on an item.
#pragma once

#include "base/result.h"
#include "expression/tree.h"
#include "item/value.h"

namespace tabella::expression {

// The item after `update`. `old` is what it reads, null if there is no item yet; `base` is what it changes:
// the old item, or just the key.
Checked<item::Item> apply(const Update& update, const item::ItemView* old, item::ItemView base);

// The paths that an update touches, for ReturnValues UPDATED_OLD and UPDATED_NEW.
Projection touched_paths(const Update& update);

}  // namespace tabella::expression

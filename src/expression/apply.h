// Carries out an update on an item.
#pragma once

#include "base/result.h"
#include "expression/tree.h"
#include "item/value.h"

namespace tabella::expression {

// The item after `update`. `base` is what it reads and changes: the item as it is, or just the key if there
// is none yet (`exists` is false).
Checked<item::Item> apply(const Update& update, item::ItemView base, bool exists);

// The paths that an update touches, for ReturnValues UPDATED_OLD and UPDATED_NEW.
Projection touched_paths(const Update& update);

}  // namespace tabella::expression

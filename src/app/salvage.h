// `tabella salvage FROM TO`.
#pragma once

#include "app/commands.h"

namespace tabella::app {

// The exit code: 0, nothing is known to be lost; 1, something is; 2, it could not be done.
int salvage(const SalvageOptions& options);

}  // namespace tabella::app
